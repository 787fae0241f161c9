/*
 * class: condition not tested again after the wait
 * oracle: exit 2
 * racing: steal | enter wait
 * also: push notify check
 * threads: 3
 * flags: -std=c++17 -O1
 *
 * Two printers share a queue of pages. A printer that was woken for a page believes that it is there, but the other one
 * may have come along and have taken it between the wake-up and the return from the wait.
 */
#include <array>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

namespace
{

constexpr int PAGES = 2;

class Queue
{
  public:
    void push(int page)
    {
        std::lock_guard<std::mutex> guard(lock_);
        pages_[tail_++ % pages_.size()] = page; /* RACE:push */
        ready_.notify_one();                    /* RACE:notify */
    }

    int pop()
    {
        std::unique_lock<std::mutex> guard(lock_); /* RACE:enter */
#ifdef FIXED
        while (head_ == tail_)
#else
        if (head_ == tail_) /* RACE:check */
#endif
            ready_.wait(guard);                 /* RACE:wait */
        return pages_[head_++ % pages_.size()]; /* RACE:steal */
    }

  private:
    std::mutex lock_;
    std::condition_variable ready_;
    std::array<int, 8> pages_{};
    unsigned head_ = 0;
    unsigned tail_ = 0;
};

Queue queue;

} // namespace

int main()
{
    std::array<bool, PAGES + 1> printed{}; /* the first is a page that nobody sent */
    std::array<int, PAGES> got{};
    auto print = [&got](int printer) { got[printer] = queue.pop(); };
    std::thread left(print, 0);
    std::thread right(print, 1);
    for (int page = 1; page <= PAGES; page++)
        queue.push(page);
    left.join();
    right.join();
    for (int page : got)
        printed[page] = true;
    for (int page = 1; page <= PAGES; page++)
        if (!printed[page]) {
            std::fprintf(stderr, "page %d was not printed\n", page);
            return 2;
        }
    std::printf("%d pages printed\n", PAGES);
    return 0;
}
