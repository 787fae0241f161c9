/*
 * class: reference count, decremented and then tested
 * oracle: signal SIGABRT
 * racing: decrement test
 * threads: 3
 * flags: -std=c++17 -O1
 *
 * Frames of a player come from a pool and go back when their last user lets go. Decrementing and testing are two atomic
 * operations instead of one: both users can see the zero.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace
{

class Pool;

class Frame
{
  public:
    void attach(Pool *pool, int users)
    {
        pool_ = pool;
        pooled = false;
        users_.store(users);
    }
    void release();

    bool pooled = true;
    unsigned char luma[4] = {16, 32, 64, 128};

  private:
    Pool *pool_ = nullptr;
    std::atomic<int> users_{0};
};

class Pool
{
  public:
    Frame *take(int users)
    {
        frame_.attach(this, users);
        return &frame_;
    }
    void give_back(Frame *frame)
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (frame->pooled) {
            std::fputs("a frame was given back twice\n", stderr);
            std::abort();
        }
        frame->pooled = true;
    }

  private:
    std::mutex lock_;
    Frame frame_;
};

void Frame::release()
{
#ifdef FIXED
    if (users_.fetch_sub(1) == 1)
        pool_->give_back(this);
#else
    users_.fetch_sub(1);    /* RACE:decrement */
    if (users_.load() == 0) /* RACE:test */
        pool_->give_back(this);
#endif
}

int brightness(const Frame *frame)
{
    int sum = 0;
    for (unsigned char value : frame->luma)
        sum += value;
    return sum / 4;
}

} // namespace

int main()
{
    static Pool pool;
    Frame *frame = pool.take(2);
    int seen[2] = {0, 0};
    auto show = [frame](int *result) {
        *result = brightness(frame);
        frame->release();
    };
    std::thread screen(show, &seen[0]);
    std::thread encoder(show, &seen[1]);
    screen.join();
    encoder.join();
    std::printf("brightness %d and %d\n", seen[0], seen[1]);
    return 0;
}
