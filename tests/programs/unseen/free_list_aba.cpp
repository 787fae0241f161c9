/*
 * class: ABA in a lock-free list
 * oracle: regex (?!3)\d of 3 buffers are free
 * racing: head put | next put | swap put | head swap | next swap
 * also: link
 * threads: 3
 * flags: -std=c++17 -O1
 *
 * The free list of an audio mixer's buffers. A take compares the head with what it read before and swaps in the
 * successor it read then. If the same buffer is the head again after others were taken, the comparison succeeds and a
 * buffer that is in use becomes the head.
 */
#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

namespace
{

constexpr unsigned BUFFERS = 3;
constexpr unsigned NONE = 0xff;
constexpr unsigned INDEX = 0xff; /* the bits of the head that are the index; a count may be above them */
#ifdef FIXED
constexpr unsigned CHANGE = INDEX + 1;
#else
constexpr unsigned CHANGE = 0;
#endif

struct Buffer {
    std::atomic<unsigned> next{NONE};
    std::array<float, 8> samples{};
};

class FreeList
{
  public:
    FreeList()
    {
        for (unsigned i = BUFFERS; i-- > 0;)
            give(i);
    }

    unsigned take()
    {
        unsigned old = head_.load(); /* RACE:head */
        while ((old & INDEX) != NONE) {
            unsigned next = buffers_[old & INDEX].next.load();                        /* RACE:next */
            if (head_.compare_exchange_strong(old, ((old & ~INDEX) + CHANGE) | next)) /* RACE:swap */
                break;
        }
        return old & INDEX;
    }

    void give(unsigned index)
    {
        unsigned old = head_.load();
        do
            buffers_[index].next.store(old & INDEX); /* RACE:link */
        while (!head_.compare_exchange_strong(old, ((old & ~INDEX) + CHANGE) | index)); /* RACE:put */
    }

    Buffer &operator[](unsigned index) { return buffers_[index]; }

    int count() const
    {
        std::array<bool, BUFFERS> seen{};
        int found = 0;
        for (unsigned i = head_.load() & INDEX; i != NONE && !seen[i]; i = buffers_[i].next.load()) {
            seen[i] = true;
            found++;
        }
        return found;
    }

  private:
    std::atomic<unsigned> head_{NONE};
    std::array<Buffer, BUFFERS> buffers_;
};

FreeList list;

void decode()
{
    unsigned packet = list.take();
    list[packet].samples.fill(0.25F);
    list.give(packet);
}

void mix()
{
    unsigned scratch = list.take();
    unsigned output = list.take();
    list[scratch].samples.fill(0.5F);
    list[output].samples = list[scratch].samples;
    list.give(scratch);
    for (float &sample : list[output].samples)
        sample *= 0.5F;
    list.give(output);
}

} // namespace

int main()
{
    std::thread mixer(mix);
    std::thread decoder(decode);
    mixer.join();
    decoder.join();
    std::printf("%d of %u buffers are free\n", list.count(), BUFFERS);
    return 0;
}
