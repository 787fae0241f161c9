/*
 * Prohibitions: runs in the constructor, before main. No malloc (the program's heap is to be as without us), no stdio.
 */
#include "rb_modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "rb_patch.h"

#define PATH_BYTES 4096

/* Where the pass over all modules stands. */
struct pass {
    uint32_t next_site;
    int list; /* the file `modules`, or negative */
};

/* A whole file, mapped; NULL when it cannot be. */
static const char *map_file(const char *path, size_t *bytes)
{
    int fd = rb_sys_open(path, O_RDONLY, 0);
    const char *file = NULL;
    long size;

    if (fd < 0)
        return NULL;
    size = rb_sys(SYS_lseek, fd, 0, 2 /* SEEK_END */, 0, 0, 0);
    if (size > 0) {
        void *mapped = rb_sys_mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);

        file = rb_sys_failed(mapped) ? NULL : mapped;
        *bytes = (size_t)size;
    }
    rb_sys_close(fd);
    return file;
}

/* The two sections of ours, if the file has them; nothing in a damaged file leads out of it. */
static void find_sections(struct rb_module *module, const char *file, size_t bytes)
{
    const ElfW(Ehdr) *header = (const void *)file;
    const ElfW(Shdr) * sections, *names;

    if (bytes < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_shoff > bytes ||
        header->e_shnum > (bytes - header->e_shoff) / sizeof(*sections) || header->e_shstrndx >= header->e_shnum)
        return;
    sections = (const void *)(file + header->e_shoff);
    names = &sections[header->e_shstrndx];
    for (size_t i = 0; i < header->e_shnum; i++) {
        size_t name = names->sh_offset + sections[i].sh_name;
        void *loaded = (void *)(module->base + sections[i].sh_addr);

        if (name + sizeof(RB_SECTION_OBJECTS) > bytes || !(sections[i].sh_flags & SHF_ALLOC))
            continue;
        if (!memcmp(file + name, RB_SECTION_SITES, sizeof(RB_SECTION_SITES))) {
            module->sites = loaded;
            module->nsites = sections[i].sh_size / sizeof(struct rb_site);
        } else if (!memcmp(file + name, RB_SECTION_OBJECTS, sizeof(RB_SECTION_OBJECTS))) {
            module->objects = loaded;
            module->nobjects = sections[i].sh_size / sizeof(struct rb_object);
        }
    }
}

static void list_module(int list, const struct rb_module *module)
{
    char line[PATH_BYTES + 20];
    size_t used = 0, length = strlen(module->path);

    if (list < 0 || length >= PATH_BYTES)
        return;
    for (int shift = 60; shift >= 0; shift -= 4)
        line[used++] = "0123456789abcdef"[module->base >> shift & 15];
    line[used++] = ' ';
    memcpy(line + used, module->path, length);
    used += length;
    line[used++] = '\n';
    rb_sys_write(list, line, used);
}

/* Accesses wider than 8 bytes and memory functions run in pieces where accesses count. */
static void run_in_pieces(struct rb_object *object)
{
    if (object->pieces)
        *((uint8_t *)&object->pieces + object->pieces) = 1;
}

/* Numbers the module's objects from *next on, and patches. */
static void take_sites(struct rb_module *module, uint32_t *next)
{
    size_t bytes = module->nobjects * sizeof(uint32_t);
    uint32_t *first = rb_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int accesses = rb_state.control->level == RB_LEVEL_RW || rb_state.control->mode == RB_MODE_REPLAY;

    if (rb_sys_failed(first))
        rb_die("no memory to number the sites of the program", rb_sys_failed(first));
    for (size_t i = 0; i < module->nobjects; i++) {
        first[i] = *next;
        *next += module->objects[i].sites;
        if (accesses)
            run_in_pieces(&module->objects[i]);
    }
    rb_patch_module(module, first);
    rb_sys_munmap(first, bytes);
}

/* Whose calls are no events of the program's. */
static int is_quiet(const char *path)
{
    static const char *const names[] = {"libc.so.", "ld-linux-", "libgcc_s.so."};
    const char *name = strrchr(path, '/');

    name = name ? name + 1 : path;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strncmp(name, names[i], strlen(names[i])))
            return 1;
    return 0;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    struct pass *pass = data;
    struct rb_module module = {.path = info->dlpi_name, .base = info->dlpi_addr, .low = UINTPTR_MAX};
    char executable[PATH_BYTES];
    const char *file;
    size_t bytes;

    (void)size;
    if (!*module.path) { /* the program itself */
        long length = rb_sys(SYS_readlink, (long)"/proc/self/exe", (long)executable, sizeof(executable) - 1, 0, 0, 0);

        if (pass->next_site != 1 || length <= 0)
            return 0;
        executable[length] = 0;
        module.path = executable;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + part->p_vaddr, high = low + part->p_memsz;

        if (part->p_type != PT_LOAD)
            continue;
        module.low = low < module.low ? low : module.low;
        module.high = high > module.high ? high : module.high;
        if (part->p_flags & PF_X) {
            module.code_low = low;
            module.code_high = high;
            if (is_quiet(module.path) && rb_state.nquiet < RB_QUIET_MOST)
                rb_state.quiet[rb_state.nquiet++] = (struct rb_range){low, high};
        }
    }
    file = map_file(module.path, &bytes);
    if (!file) /* the kernel's own page of code */
        return 0;
    list_module(pass->list, &module);
    find_sections(&module, file, bytes);
    if (module.sites && module.objects)
        take_sites(&module, &pass->next_site);
    rb_sys_munmap((void *)file, bytes);
    return 0;
}

void rb_modules_init(void)
{
    char path[RB_CONTROL_PATH + 16];
    struct pass pass = {.next_site = 1, .list = -1};

    if (*rb_state.control->dir) {
        strcpy(stpcpy(path, rb_state.control->dir), "/modules");
        pass.list = rb_sys_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    }
    dl_iterate_phdr(visit, &pass);
    if (pass.list >= 0)
        rb_sys_close(pass.list);
}
