// What C++ does by itself: call_once whose routine throws, exceptions through sites, thread_local destructors, waits
// with a time-out, and how many cores it believes to have.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

std::once_flag flag;
std::mutex mutex;
std::condition_variable condition;
std::atomic<int> destroyed{0};
int tries;

struct Local {
    std::string text = "a string that is long enough to be allocated";
    ~Local() { destroyed++; }
};
thread_local Local local;

static void routine()
{
    std::lock_guard<std::mutex> guard(mutex);
    if (++tries < 3)
        throw std::runtime_error("not yet");
}

static void worker()
{
    local.text += "!";
    for (bool done = false; !done;) {
        try {
            std::call_once(flag, routine);
            done = true;
        } catch (const std::runtime_error &) {
        }
    }
    std::unique_lock<std::mutex> lock(mutex);
    condition.wait_for(lock, std::chrono::microseconds(10));
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(worker);
    for (auto &thread : threads)
        thread.join();
    std::printf("tries %d destroyed %d cores %u\n", tries, destroyed.load(), std::thread::hardware_concurrency());
}
