/*
 * Numbers for calls: which stack, and which call, in one word, so that nothing is kept a call.  The lower bits name the
 * stack: a native one by its own number, a pair of a native one and Python's by its place in a table.  Uses src/base and
 * the recorder's stacks.
 */
#include "api/history.h"

#include "base/array.h"
#include "base/table.h"
#include "record/stacks.h"

#define STACK_BITS 28
#define STACK_PAIR (UINT32_C(1) << (STACK_BITS - 1)) /* it is a pair's place */
#define CALLS_AT_ONCE 65536u /* numbers that a thread takes for itself */

struct pair {
    uint32_t native, python;
};

static struct library_lock pairs_lock;
static struct pair *pairs;
static size_t pair_count, pair_capacity;
static struct table pair_index;

static atomic_ullong last_call;
static __thread uint64_t call, calls_end;

static uint64_t next_call(void)
{
    if (call == calls_end) {
        call = atomic_fetch_add_explicit(&last_call, CALLS_AT_ONCE, memory_order_relaxed);
        calls_end = call + CALLS_AT_ONCE;
    }
    return ++call;
}

/* 0: no memory, or too many. */
static uint32_t pair_number(uint32_t native, uint32_t python)
{
    uint64_t key = (uint64_t)native << 32 | python;
    lock_take(&pairs_lock);
    uint32_t number = table_get(&pair_index, key, UINT32_MAX);
    if (number == UINT32_MAX && pair_count < STACK_PAIR &&
        !array_reserve(&pairs, &pair_capacity, pair_count + 1, sizeof(*pairs)) &&
        !table_set(&pair_index, key, (uint32_t)pair_count)) {
        number = (uint32_t)pair_count;
        pairs[pair_count++] = (struct pair){native, python};
    }
    lock_open(&pairs_lock);
    return number == UINT32_MAX ? 0 : number | STACK_PAIR;
}

static uint64_t take(void)
{
    uint32_t native, python;
    if (!recorder_stacks_take(&native, &python))
        return 0;
    if (native == RING_STACK_NONE)
        native = RING_STACK_EMPTY;
    uint32_t stack = python == RING_STACK_NONE && native < STACK_PAIR ? native : pair_number(native, python);
    return stack ? next_call() << STACK_BITS | stack : 0;
}

/* A signal handler's call in the midst of one has none. */
uint64_t history_context_take(void)
{
    static __thread bool inside;
    if (inside)
        return 0;
    inside = true;
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t context = take();
    atomic_signal_fence(memory_order_seq_cst);
    inside = false;
    return context;
}

void history_context_stacks(uint64_t context, uint32_t *native, uint32_t *python)
{
    uint32_t stack = (uint32_t)(context & ((UINT64_C(1) << STACK_BITS) - 1));
    *native = stack;
    *python = RING_STACK_NONE;
    if (!(stack & STACK_PAIR))
        return;
    lock_take(&pairs_lock);
    const struct pair pair = pairs[stack & ~STACK_PAIR];
    lock_open(&pairs_lock);
    *native = pair.native;
    *python = pair.python;
}
