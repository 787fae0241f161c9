/*
 * class: weak pointer that revives a dead object
 * oracle: signal SIGABRT
 * racing: expired drop | revive drop
 * also: expired revive
 * threads: 3
 * flags: -std=c++17 -O1
 *
 * A texture with a control block written by hand, as of std::shared_ptr. The renderer holds it weakly. Locking a weak
 * pointer looks whether there is an owner and then counts one more; if the last owner goes in between, the texture is
 * destroyed and has an owner again, and is destroyed once more when that one goes.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace
{

struct Texture {
    unsigned width = 64;
    unsigned height = 32;
};

class Block
{
  public:
    bool add_owner_unless_dead()
    {
#ifdef FIXED
        int owners = owners_.load();
        while (owners != 0)
            if (owners_.compare_exchange_weak(owners, owners + 1))
                return true;
        return false;
#else
        if (owners_.load() == 0) /* RACE:expired */
            return false;
        owners_.fetch_add(1); /* RACE:revive */
        return true;
#endif
    }

    void drop_owner()
    {
        if (owners_.fetch_sub(1) == 1) /* RACE:drop */
            destroy();
    }

    const Texture &texture() const { return texture_; }

  private:
    void destroy()
    {
        if (destroyed_.exchange(true)) {
            std::fputs("a texture was destroyed twice\n", stderr);
            std::abort();
        }
    }

    std::atomic<int> owners_{1};
    std::atomic<bool> destroyed_{false};
    Texture texture_;
};

class Shared
{
  public:
    explicit Shared(Block *block) : block_(block) {}
    Shared(Shared &&other) noexcept : block_(other.block_) { other.block_ = nullptr; }
    Shared(const Shared &) = delete;
    Shared &operator=(const Shared &) = delete;
    Shared &operator=(Shared &&) = delete;
    ~Shared() { reset(); }

    void reset()
    {
        if (block_ != nullptr)
            block_->drop_owner();
        block_ = nullptr;
    }
    explicit operator bool() const { return block_ != nullptr; }
    const Texture *operator->() const { return &block_->texture(); }

  private:
    Block *block_;
};

class Weak
{
  public:
    explicit Weak(Block *block) : block_(block) {}
    Shared lock() const { return Shared(block_->add_owner_unless_dead() ? block_ : nullptr); }

  private:
    Block *block_;
};

std::atomic<unsigned> drawn{0};

void render(Weak seen)
{
    if (Shared texture = seen.lock())
        drawn += texture->width * texture->height;
}

} // namespace

int main()
{
    static Block block;
    Shared scene(&block);
    std::thread renderer(render, Weak(&block));
    std::thread loader([&scene] { scene.reset(); });
    renderer.join();
    loader.join();
    std::puts("frame done");
    return 0;
}
