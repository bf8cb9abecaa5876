/*
 * The recorder's stacks alone: the tables of a ring file that is only memory, and no events.  Uses the capture of stack.c
 * and python.c.
 */
#include "record/stacks.h"

#include "record/internal.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The object that this code is part of. */
static int find_own_object(struct dl_phdr_info *info, size_t size, void *found)
{
    uintptr_t here = (uintptr_t)find_own_object;
    (void)size, (void)found;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || here - start >= info->dlpi_phdr[i].p_memsz)
            continue;
        recorder.own_start = start;
        recorder.own_size = info->dlpi_phdr[i].p_memsz;
        return 1;
    }
    return 0;
}

/* The first time: clock, memory, what threads and forks need. */
static int begin(char *message, size_t message_size)
{
    if (recorder.header)
        return 0;
    recorder.page = (size_t)sysconf(_SC_PAGESIZE);
    recorder.max_nodes = RECORDER_MAX_NODES;
    recorder.rank = -1;
    ssize_t length = readlink("/proc/self/exe", recorder.program, sizeof(recorder.program) - 1);
    recorder.program[length > 0 ? length : 0] = 0;
    ticks_choose();
    ticks_sample(&recorder.start);
    dl_iterate_phdr(find_own_object, NULL);
    if (ring_file_make_in_memory()) {
        snprintf(message, message_size, "no memory for stacks");
        return -1;
    }
    recorder.stacks = recorder.python = true; /* captures are fork's concern from now on */
    recorder_threads_start();
    recorder.stacks = recorder.python = false;
    return 0;
}

int recorder_stacks_start(unsigned depth, bool native, bool python, char *message, size_t message_size)
{
    static bool has_unwinder;
    message[0] = 0;
    if (begin(message, message_size))
        return -1;
    if (native && !has_unwinder)
        has_unwinder = stack_start(message, message_size) == 0;
    depth = depth < RECORDER_DEPTH_MAX ? depth : RECORDER_DEPTH_MAX;
    native = native && has_unwinder;
    if (depth == recorder.depth && native == recorder.stacks && python == recorder.python)
        return 0;
    recorder_hold_captures();
    recorder.depth = depth;
    recorder.stacks = native;
    recorder.python = python;
    recorder_release_captures();
    return 0;
}

bool recorder_stacks_take(uint32_t *native, uint32_t *python)
{
    *native = *python = RING_STACK_NONE;
    if (!recorder_self.block)
        recorder_enter_thread();
    if (!recorder_self.block || recorder_self.inside) { /* a signal handler's, in the midst of one */
        recorder_count(&recorder.header->lost_stacks);
        return false;
    }
    recorder_self.inside = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    bool taken = stack_capture(recorder_self.block, NULL, ticks_now(), native, python);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    recorder_self.inside = 0;
    return taken;
}

uint64_t recorder_stacks_ticks(void)
{
    return ticks_now();
}

void recorder_stacks_sample(struct ring_calibration *sample)
{
    ticks_sample(sample);
}

const struct ring_header *recorder_stacks_header(void)
{
    return recorder.header;
}

void *recorder_stacks_copy(enum ring_table_name name, uint64_t *count)
{
    const struct ring_table *table = &recorder.header->tables[name];
    *count = __atomic_load_n(&table->count, __ATOMIC_ACQUIRE);
    char *copy = malloc(*count * table->element + 1);
    for (uint64_t done = 0, chunk = 0; copy && done < *count; chunk++) {
        uint64_t here = (uint64_t)table->first << chunk;
        if (here > *count - done)
            here = *count - done;
        memcpy(copy + done * table->element, recorder.tables[name][chunk], here * table->element);
        done += here;
    }
    return copy;
}
