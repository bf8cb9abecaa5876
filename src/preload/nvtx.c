/*
 * NVTX: this library is also the tool that NVTX asks for, so that ranges that a program named stand beside its memory.
 * Uses the recorder.  Answers are those of a program that nobody listens to, but for handles, which have to be something.
 */
#include "preload/nvtx.h"

#include "preload/nvtx_abi.h"
#include "preload/preload.h"
#include "preload/spin.h"
#include "record/record.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define NVTX_NAME 1024u    /* bytes of a name at most */
#define NVTX_DOMAINS 128u  /* by name; more share the last one */
#define NVTX_DOMAIN_NAME 60u
#define NVTX_CHUNK ((size_t)1 << 20) /* registered strings; what does not fit into so many is nameless */
#define NVTX_CHUNKS 16u

struct nvtx_string {
    uint32_t length;
    char bytes[];
};

struct nvtx_domain {
    uint32_t length;
    char name[NVTX_DOMAIN_NAME];
};

static struct nvtx_domain nvtx_domains[NVTX_DOMAINS]; /* number i + 1; 0 is the default one */
static unsigned nvtx_domain_count;
static char *nvtx_chunk;
static size_t nvtx_chunk_used, nvtx_chunk_count;
static atomic_flag nvtx_lock = ATOMIC_FLAG_INIT;
static _Atomic uint64_t nvtx_ranges;

void nvtx_after_fork(void)
{
    spin_unlock(&nvtx_lock);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

struct name {
    const char *bytes;
    size_t length;
    char buffer[NVTX_NAME + 4];
};

static void narrow(struct name *name, const char *text)
{
    name->bytes = text ? text : "";
    name->length = text ? strnlen(text, NVTX_NAME) : 0;
}

static size_t put_character(char *to, uint32_t c)
{
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        c = 0xfffd;
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((length == 2 ? 0xc0 : length == 3 ? 0xe0 : 0xf0) | c);
    return length;
}

static void wide(struct name *name, const wchar_t *text)
{
    name->bytes = name->buffer;
    name->length = 0;
    while (text && *text && name->length < NVTX_NAME)
        name->length += put_character(name->buffer + name->length, (uint32_t)*text++);
}

static void of_attributes(struct name *name, const struct nvtx_attributes *attributes)
{
    narrow(name, NULL);
    if (!attributes || attributes->size < sizeof(*attributes))
        return;
    const struct nvtx_string *registered = attributes->message.registered;
    switch (attributes->message_type) {
    case NVTX_MESSAGE_A:
        narrow(name, attributes->message.a);
        break;
    case NVTX_MESSAGE_W:
        wide(name, attributes->message.w);
        break;
    case NVTX_MESSAGE_REGISTERED:
        if (registered) {
            name->bytes = registered->bytes;
            name->length = registered->length;
        }
        break;
    default:
        break;
    }
}

static const void *register_name(const struct name *name)
{
    size_t size = (sizeof(struct nvtx_string) + name->length + 7) & ~(size_t)7;
    struct nvtx_string *string = NULL;
    spin_lock(&nvtx_lock);
    if ((!nvtx_chunk || NVTX_CHUNK - nvtx_chunk_used < size) && nvtx_chunk_count < NVTX_CHUNKS) {
        void *map = mmap(NULL, NVTX_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map != MAP_FAILED) {
            nvtx_chunk = map;
            nvtx_chunk_used = 0;
            nvtx_chunk_count++;
        }
    }
    if (nvtx_chunk && NVTX_CHUNK - nvtx_chunk_used >= size) {
        string = (struct nvtx_string *)(void *)(nvtx_chunk + nvtx_chunk_used);
        nvtx_chunk_used += size;
        string->length = (uint32_t)name->length;
        memcpy(string->bytes, name->bytes, name->length);
    }
    spin_unlock(&nvtx_lock);
    return string;
}

static const void *find_domain(const struct name *name)
{
    uint32_t length = (uint32_t)(name->length < NVTX_DOMAIN_NAME ? name->length : NVTX_DOMAIN_NAME);
    spin_lock(&nvtx_lock);
    unsigned i = 0;
    while (i < nvtx_domain_count && i < NVTX_DOMAINS - 1 &&
           !(nvtx_domains[i].length == length && memcmp(nvtx_domains[i].name, name->bytes, length) == 0))
        i++;
    if (i == nvtx_domain_count) {
        nvtx_domains[i].length = length;
        memcpy(nvtx_domains[i].name, name->bytes, length);
        nvtx_domain_count++;
    }
    spin_unlock(&nvtx_lock);
    return &nvtx_domains[i];
}

static uint32_t number_of(const void *domain)
{
    const struct nvtx_domain *known = domain;
    bool is_ours = known >= nvtx_domains && known < nvtx_domains + NVTX_DOMAINS;
    return is_ours ? (uint32_t)(known - nvtx_domains) + 1 : 0;
}

/* --- what programs call ------------------------------------------------------------------------------------------- */

static void tell(enum record_annotation what, uint32_t domain, uint64_t range, const struct name *name)
{
    if (preload_is_recording())
        recorder_annotate(what, domain, range, name ? name->bytes : "", name ? name->length : 0);
}

static uint64_t start(uint32_t domain, const struct name *name)
{
    uint64_t range = atomic_fetch_add(&nvtx_ranges, 1) + 1;
    tell(RECORD_RANGE_START, domain, range, name);
    return range;
}

#define NAMED(type, function, fill, body) \
    static type function \
    { \
        struct name name; \
        fill; \
        body; \
    }

NAMED(void, mark_ex(const struct nvtx_attributes *attributes), of_attributes(&name, attributes),
      tell(RECORD_INSTANT, 0, 0, &name))
NAMED(void, mark_a(const char *text), narrow(&name, text), tell(RECORD_INSTANT, 0, 0, &name))
NAMED(void, mark_w(const wchar_t *text), wide(&name, text), tell(RECORD_INSTANT, 0, 0, &name))
NAMED(uint64_t, start_ex(const struct nvtx_attributes *attributes), of_attributes(&name, attributes),
      return start(0, &name))
NAMED(uint64_t, start_a(const char *text), narrow(&name, text), return start(0, &name))
NAMED(uint64_t, start_w(const wchar_t *text), wide(&name, text), return start(0, &name))
NAMED(int, push_ex(const struct nvtx_attributes *attributes), of_attributes(&name, attributes),
      tell(RECORD_RANGE_PUSH, 0, 0, &name); return NVTX_UNTRACKED)
NAMED(int, push_a(const char *text), narrow(&name, text), tell(RECORD_RANGE_PUSH, 0, 0, &name); return NVTX_UNTRACKED)
NAMED(int, push_w(const wchar_t *text), wide(&name, text), tell(RECORD_RANGE_PUSH, 0, 0, &name); return NVTX_UNTRACKED)
NAMED(void, domain_mark_ex(const void *domain, const struct nvtx_attributes *attributes),
      of_attributes(&name, attributes), tell(RECORD_INSTANT, number_of(domain), 0, &name))
NAMED(uint64_t, domain_start_ex(const void *domain, const struct nvtx_attributes *attributes),
      of_attributes(&name, attributes), return start(number_of(domain), &name))
NAMED(int, domain_push_ex(const void *domain, const struct nvtx_attributes *attributes),
      of_attributes(&name, attributes), tell(RECORD_RANGE_PUSH, number_of(domain), 0, &name); return NVTX_UNTRACKED)
NAMED(const void *, register_a(const void *domain, const char *text), narrow(&name, text),
      (void)domain; return register_name(&name))
NAMED(const void *, register_w(const void *domain, const wchar_t *text), wide(&name, text),
      (void)domain; return register_name(&name))
NAMED(const void *, domain_create_a(const char *text), narrow(&name, text), return find_domain(&name))
NAMED(const void *, domain_create_w(const wchar_t *text), wide(&name, text), return find_domain(&name))

static void end(uint64_t range)
{
    tell(RECORD_RANGE_END, 0, range, NULL);
}

static int pop(void)
{
    tell(RECORD_RANGE_POP, 0, 0, NULL);
    return NVTX_UNTRACKED;
}

static void domain_end(const void *domain, uint64_t range)
{
    tell(RECORD_RANGE_END, number_of(domain), range, NULL);
}

static int domain_pop(const void *domain)
{
    tell(RECORD_RANGE_POP, number_of(domain), 0, NULL);
    return NVTX_UNTRACKED;
}

static void domain_destroy(const void *domain)
{
    (void)domain; /* another of the same name may be in use */
}

/* --- the start ---------------------------------------------------------------------------------------------------- */

struct entry {
    unsigned number;
    nvtx_pointer function;
};

static const struct entry nvtx_core[] = {
    {NVTX_MARK_EX, (nvtx_pointer)mark_ex},   {NVTX_MARK_A, (nvtx_pointer)mark_a},   {NVTX_MARK_W, (nvtx_pointer)mark_w},
    {NVTX_START_EX, (nvtx_pointer)start_ex}, {NVTX_START_A, (nvtx_pointer)start_a}, {NVTX_START_W, (nvtx_pointer)start_w},
    {NVTX_END, (nvtx_pointer)end},           {NVTX_PUSH_EX, (nvtx_pointer)push_ex}, {NVTX_PUSH_A, (nvtx_pointer)push_a},
    {NVTX_PUSH_W, (nvtx_pointer)push_w},     {NVTX_POP, (nvtx_pointer)pop},
};

static const struct entry nvtx_with_domains[] = {
    {NVTX_DOMAIN_MARK_EX, (nvtx_pointer)domain_mark_ex},
    {NVTX_DOMAIN_START_EX, (nvtx_pointer)domain_start_ex},
    {NVTX_DOMAIN_END, (nvtx_pointer)domain_end},
    {NVTX_DOMAIN_PUSH_EX, (nvtx_pointer)domain_push_ex},
    {NVTX_DOMAIN_POP, (nvtx_pointer)domain_pop},
    {NVTX_REGISTER_A, (nvtx_pointer)register_a},
    {NVTX_REGISTER_W, (nvtx_pointer)register_w},
    {NVTX_DOMAIN_CREATE_A, (nvtx_pointer)domain_create_a},
    {NVTX_DOMAIN_CREATE_W, (nvtx_pointer)domain_create_w},
    {NVTX_DOMAIN_DESTROY, (nvtx_pointer)domain_destroy},
};

static bool install(const struct nvtx_callbacks *callbacks, int module, const struct entry *entries, size_t count)
{
    nvtx_pointer **table = NULL;
    unsigned size = 0;
    if (!callbacks->get_module(module, &table, &size) || !table)
        return false;
    for (size_t i = 0; i < count; i++)
        if (entries[i].number < size && table[entries[i].number])
            *table[entries[i].number] = entries[i].function;
    return true;
}

extern int InitializeInjectionNvtx2(nvtx_get_table get_table);

/* Each library of a program that has NVTX in it comes by here once.  0: nobody listens. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx_get_table get_table)
{
    if (!get_table || !preload_enabled())
        return 0;
    const struct nvtx_callbacks *callbacks = get_table(NVTX_TABLE_CALLBACKS);
    if (!callbacks || callbacks->size < sizeof(*callbacks) || !callbacks->get_module)
        return 0;
    bool core = install(callbacks, NVTX_MODULE_CORE, nvtx_core, sizeof(nvtx_core) / sizeof(*nvtx_core));
    bool domains = install(callbacks, NVTX_MODULE_DOMAINS, nvtx_with_domains,
                           sizeof(nvtx_with_domains) / sizeof(*nvtx_with_domains));
    preload_debug("NVTX: ranges%s%s", core ? " of the default domain" : "", domains ? " and of others" : "");
    return core || domains;
}
