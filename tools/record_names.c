/* Names that tell processes apart.  Uses format/ring_read and tools/ring_snapshot.h. */
#include "tools/record_names.h"

#include "format/ring_read.h"
#include "tools/ring_snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct named {
    size_t ring;
    char *name; /* NULL: not known */
};

static char *name_of(const struct record_file *ring, const char *pattern, const char *host)
{
    struct ring_facts facts;
    if (ring_read_facts(ring->path, &facts, NULL))
        return NULL;
    return ring_name_make(&(struct ring_name){.pattern = pattern, .program = facts.program, .host = host, .pid = facts.pid,
                                              .rank = facts.rank});
}

static int compare_names(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    if (!x->name || !y->name)
        return (x->name != NULL) - (y->name != NULL);
    return strcmp(x->name, y->name);
}

bool *record_names_unique(const struct record_file *rings, size_t count, const char *pattern)
{
    char host[256] = "";
    bool *unique = calloc(count + 1, sizeof(*unique));
    struct named *names = calloc(count + 1, sizeof(*names));
    gethostname(host, sizeof(host) - 1);
    for (size_t i = 0; i < count && unique && names; i++)
        names[i] = (struct named){i, name_of(&rings[i], pattern, host)};
    if (unique && names && count)
        qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 0; i < count && unique && names; i++)
        unique[names[i].ring] = names[i].name && (i == 0 || compare_names(&names[i - 1], &names[i]) != 0) &&
                                (i + 1 == count || compare_names(&names[i], &names[i + 1]) != 0);
    for (size_t i = 0; i < count && names; i++)
        free(names[i].name);
    if (!names) {
        free(unique);
        unique = NULL;
    }
    free(names);
    return unique;
}

struct image {
    int64_t pid, start;
    size_t ring;
};

static int compare_images(const void *a, const void *b)
{
    const struct image *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

uint32_t *record_names_images(const struct record_file *rings, size_t count)
{
    uint32_t *numbers = calloc(count + 1, sizeof(*numbers));
    struct image *images = calloc(count + 1, sizeof(*images));
    struct ring_facts facts;
    for (size_t i = 0; i < count && numbers && images; i++)
        images[i] = (struct image){rings[i].pid, ring_read_facts(rings[i].path, &facts, NULL) ? 0 : facts.start_time, i};
    if (numbers && images && count)
        qsort(images, count, sizeof(*images), compare_images);
    for (size_t i = 0, first = 0; i < count && numbers && images; i++) {
        first = images[first].pid == images[i].pid ? first : i;
        bool is_last = i + 1 == count || images[i + 1].pid != images[i].pid;
        numbers[images[i].ring] = is_last ? 0 : (uint32_t)(i - first + 1);
    }
    if (!images) {
        free(numbers);
        numbers = NULL;
    }
    free(images);
    return numbers;
}
