// What C++17 has to offer, in one program whose output depends on nothing else.
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace
{

struct Shape {
    virtual ~Shape() { ended++; }
    virtual double area() const = 0;
    virtual std::string name() const { return "shape"; }
    static inline int ended = 0;
};
struct Named : virtual Shape {
    std::string name() const override { return "named"; }
};
struct Square : Named {
    explicit Square(double side) : side(side) {}
    double area() const override { return side * side; }
    double side;
};
struct Circle : virtual Shape {
    explicit Circle(double radius) : radius(radius) {}
    double area() const override { return 3 * radius * radius; }
    double radius;
};

struct Failure : std::runtime_error {
    Failure(int code, const std::string &what) : std::runtime_error(what), code(code) {}
    int code;
};
struct Guard {
    explicit Guard(std::string &log) : log(log) {}
    ~Guard() { log += '~'; }
    std::string &log;
};

int fall(int depth, std::string &log)
{
    Guard guard(log);
    if (depth == 0)
        throw Failure(42, "deep");
    if (depth == 3) {
        try {
            return fall(depth - 1, log);
        } catch (const Failure &failure) {
            log += "caught ";
            throw Failure(failure.code + 1, failure.what() + std::string("er"));
        }
    }
    return fall(depth - 1, log) + 1;
}

int careful(int n)
try {
    if (n % 3 == 0)
        throw n;
    if (n % 3 == 1)
        throw std::string("text");
    return n;
} catch (int value) {
    return -value;
} catch (...) {
    return 1000;
}

std::vector<int> made_before_main = [] {
    std::vector<int> made(10);
    std::iota(made.begin(), made.end(), 5);
    return made;
}();
const std::map<std::string, int> numbers{{"one", 1}, {"two", 2}, {"three", 3}};

struct Own {
    ~Own() { total += count; }
    int count = 0;
    static inline std::atomic<int> total{0};
};
thread_local Own own;

std::mutex mutex;
std::condition_variable changed;
std::queue<int> queue;
bool closed = false;
std::atomic<long> consumed{0};
std::once_flag once;
std::atomic<double> level{0.5};

void consume()
{
    for (;;) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [] { return closed || !queue.empty(); });
        if (queue.empty())
            return;
        int item = queue.front();
        queue.pop();
        lock.unlock();
        consumed.fetch_add(item, std::memory_order_relaxed);
        own.count++;
    }
}

int &counter()
{
    static int value = static_cast<int>(made_before_main.size());
    return value;
}

template <typename T>
T power(T base, unsigned exponent)
{
    return exponent ? base * power(base, exponent - 1) : T(1);
}

} // namespace

int main()
{
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.push_back(std::make_unique<Square>(3));
    shapes.push_back(std::make_unique<Circle>(2));
    for (auto &shape : shapes)
        std::cout << shape->name() << ' ' << shape->area() << ' ' << (dynamic_cast<Named *>(shape.get()) != nullptr)
                  << '\n';
    shapes.clear();
    std::cout << Shape::ended << '\n';

    std::string log;
    try {
        fall(6, log);
    } catch (const std::exception &error) {
        std::cout << error.what() << ' ' << dynamic_cast<const Failure &>(error).code << ' ' << log << '\n';
    }
    for (int i = 0; i < 9; i++)
        std::cout << careful(i) << ' ';
    std::cout << '\n';

    std::sort(made_before_main.begin(), made_before_main.end(), std::greater<>());
    for (auto [name, number] : numbers)
        std::cout << name << '=' << number << ' ' << made_before_main[number] << '\n';

    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back(consume);
    for (int i = 0; i < 200; i++) {
        std::lock_guard lock(mutex);
        queue.push(i);
        changed.notify_one();
    }
    {
        std::lock_guard lock(mutex);
        closed = true;
    }
    changed.notify_all();
    for (auto &thread : threads)
        thread.join();
    std::cout << consumed << ' ' << Own::total << '\n';

    auto task = std::async(
        std::launch::async,
        [](int n) {
            std::call_once(once, [] { counter() += 100; });
            if (n < 0)
                throw Failure(7, "async");
            return power<long>(n, 5);
        },
        9);
    auto failing = std::async(std::launch::async, [] { throw Failure(7, "async"); });
    std::cout << task.get() << ' ' << counter() << '\n';
    try {
        failing.get();
    } catch (const Failure &failure) {
        std::cout << failure.what() << failure.code << '\n';
    }
    double expected = 0.5;
    std::cout << level.compare_exchange_strong(expected, 1.5) << level.load() << level.exchange(2) << '\n';

    std::variant<int, std::string> either = "text";
    std::optional<std::array<int, 5>> maybe = std::array{1, 2, 3, 4, 5};
    std::ostringstream stream;
    stream << std::get<std::string>(either) << std::accumulate(maybe->begin(), maybe->end(), 0) << std::hex << 255;
    std::function<int(int)> fibonacci = [&](int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); };
    std::cout << stream.str() << ' ' << fibonacci(12) << std::endl;
}
