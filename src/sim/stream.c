/*
 * The simulated device's streams and events.  May use: base.
 *
 * A stream is a queue of items: a call to make, an event to mark, an event to
 * wait for.  It is emptied at once, or, when the device is set to manual, as
 * far as sim_complete says; whoever synchronises makes the time pass that the
 * work needs.  One thread at a time works on a stream (busy); calls are made
 * without the lock.
 */
#include <stdlib.h>
#include <time.h>

#include "sim/sim_private.h"

enum item_kind { ITEM_CALL, ITEM_EVENT, ITEM_WAIT };

struct item {
    enum item_kind kind;
    void (*call)(void *);
    void *data;
    struct sim_event *event;
    uint64_t generation;
    struct item *next;
};

struct sim_stream {
    struct sim *sim;
    unsigned device;
    struct item *first, *last;
    bool busy;
    struct sim_stream *next;
};

struct sim_event {
    struct sim *sim;
    uint64_t recorded, done; /* generations: the latest of each */
    struct sim_stream *stream; /* of the latest record */
    double time;
    unsigned references;
    struct sim_event *next;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void event_unref(struct sim_event *event)
{
    if (--event->references)
        return;
    struct sim_event **at = &event->sim->events;
    while (*at != event)
        at = &(*at)->next;
    *at = event->next;
    free(event);
}

static void item_free(struct item *item)
{
    if (item->event)
        event_unref(item->event);
    free(item);
}

/* Do the first item of a stream that nobody works on; false: it has to wait.  The lock is dropped for a call. */
static bool step(struct sim_stream *stream)
{
    struct sim *sim = stream->sim;
    struct item *item = stream->first;
    if (item->kind == ITEM_WAIT && item->event->done < item->generation)
        return false;
    stream->busy = true;
    if (item->kind == ITEM_CALL) {
        pthread_mutex_unlock(&sim->lock);
        item->call(item->data);
        pthread_mutex_lock(&sim->lock);
    } else if (item->kind == ITEM_EVENT && item->event->done < item->generation) {
        item->event->done = item->generation;
        item->event->time = now();
    }
    stream->first = item->next;
    if (!stream->first)
        stream->last = NULL;
    stream->busy = false;
    item_free(item);
    pthread_cond_broadcast(&sim->moved);
    return true;
}

static uint64_t run(struct sim_stream *stream, uint64_t limit)
{
    uint64_t count = 0;
    while (count < limit && stream->first && !stream->busy && step(stream))
        count++;
    return count;
}

/* Without manual: everything that can be done is done, on every stream, since one may have waited for another. */
static void run_all(struct sim *sim)
{
    uint64_t count;
    do {
        count = 0;
        for (struct sim_stream *s = sim->streams; s; s = s->next)
            if (run(s, UINT64_MAX)) { /* the list may have changed under the call: begin again */
                count = 1;
                break;
            }
    } while (count);
}

static CUresult push(struct sim_stream *stream, struct item item)
{
    struct item *copy = malloc(sizeof *copy);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = item;
    if (copy->event)
        copy->event->references++;
    if (stream->last)
        stream->last->next = copy;
    else
        stream->first = copy;
    stream->last = copy;
    if (!stream->sim->config.manual)
        run_all(stream->sim);
    return CUDA_SUCCESS;
}

/* Until event has reached generation, and until stream is empty: whatever others have to do first is done, too. */
static void finish_event(struct sim_event *event, uint64_t generation);

static void finish_stream(struct sim_stream *stream)
{
    while (stream->first) {
        struct item *item = stream->first;
        if (stream->busy)
            pthread_cond_wait(&stream->sim->moved, &stream->sim->lock);
        else if (!step(stream))
            finish_event(item->event, item->generation);
    }
}

static void finish_event(struct sim_event *event, uint64_t generation)
{
    event->references++;
    while (event->done < generation) {
        struct sim_stream *stream = event->stream;
        struct item *item = stream ? stream->first : NULL;
        if (!item)
            break;
        if (stream->busy)
            pthread_cond_wait(&event->sim->moved, &event->sim->lock);
        else if (!step(stream))
            finish_event(item->event, item->generation);
    }
    event_unref(event);
}

struct sim_stream *sim_stream_new(struct sim *sim, unsigned device)
{
    struct sim_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->sim = sim;
    stream->device = device;
    pthread_mutex_lock(&sim->lock);
    stream->next = sim->streams;
    sim->streams = stream;
    pthread_mutex_unlock(&sim->lock);
    return stream;
}

void sim_stream_free(struct sim_stream *stream)
{
    struct sim *sim = stream->sim;
    pthread_mutex_lock(&sim->lock);
    finish_stream(stream);
    struct sim_stream **at = &sim->streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    for (struct sim_event *e = sim->events; e; e = e->next)
        if (e->stream == stream)
            e->stream = NULL;
    pthread_mutex_unlock(&sim->lock);
    free(stream);
}

void sim_streams_free(struct sim *sim)
{
    while (sim->streams) {
        struct sim_stream *stream = sim->streams;
        while (stream->first) {
            struct item *item = stream->first;
            stream->first = item->next;
            item_free(item);
        }
        sim->streams = stream->next;
        free(stream);
    }
    while (sim->events) {
        struct sim_event *event = sim->events;
        sim->events = event->next;
        free(event);
    }
}

CUresult sim_stream_call(struct sim_stream *stream, void (*call)(void *), void *data)
{
    pthread_mutex_lock(&stream->sim->lock);
    CUresult result = push(stream, (struct item){.kind = ITEM_CALL, .call = call, .data = data});
    pthread_mutex_unlock(&stream->sim->lock);
    return result;
}

bool sim_stream_done(struct sim_stream *stream)
{
    pthread_mutex_lock(&stream->sim->lock);
    bool done = !stream->first;
    pthread_mutex_unlock(&stream->sim->lock);
    return done;
}

void sim_stream_finish(struct sim_stream *stream)
{
    pthread_mutex_lock(&stream->sim->lock);
    finish_stream(stream);
    pthread_mutex_unlock(&stream->sim->lock);
}

struct sim_event *sim_event_new(struct sim *sim)
{
    struct sim_event *event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->sim = sim;
    event->references = 1;
    event->time = -1;
    pthread_mutex_lock(&sim->lock);
    event->next = sim->events;
    sim->events = event;
    pthread_mutex_unlock(&sim->lock);
    return event;
}

void sim_event_free(struct sim_event *event)
{
    struct sim *sim = event->sim;
    pthread_mutex_lock(&sim->lock);
    event_unref(event);
    pthread_mutex_unlock(&sim->lock);
}

CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream)
{
    pthread_mutex_lock(&event->sim->lock);
    event->recorded++;
    event->stream = stream;
    event->time = -1;
    CUresult result = push(stream, (struct item){.kind = ITEM_EVENT, .event = event, .generation = event->recorded});
    pthread_mutex_unlock(&event->sim->lock);
    return result;
}

CUresult sim_stream_wait(struct sim_stream *stream, struct sim_event *event)
{
    pthread_mutex_lock(&event->sim->lock);
    CUresult result = CUDA_SUCCESS;
    if (event->done < event->recorded)
        result = push(stream, (struct item){.kind = ITEM_WAIT, .event = event, .generation = event->recorded});
    pthread_mutex_unlock(&event->sim->lock);
    return result;
}

bool sim_event_done(struct sim_event *event)
{
    pthread_mutex_lock(&event->sim->lock);
    bool done = event->done >= event->recorded;
    pthread_mutex_unlock(&event->sim->lock);
    return done;
}

void sim_event_finish(struct sim_event *event)
{
    pthread_mutex_lock(&event->sim->lock);
    finish_event(event, event->recorded);
    pthread_mutex_unlock(&event->sim->lock);
}

double sim_event_time(struct sim_event *event)
{
    pthread_mutex_lock(&event->sim->lock);
    double time = event->time;
    pthread_mutex_unlock(&event->sim->lock);
    return time;
}

uint64_t sim_complete(struct sim *sim, struct sim_stream *stream, uint64_t count)
{
    uint64_t done = 0;
    pthread_mutex_lock(&sim->lock);
    if (stream)
        done = run(stream, count);
    else
        for (struct sim_stream *s = sim->streams; s; s = s->next)
            done += run(s, count);
    pthread_mutex_unlock(&sim->lock);
    return done;
}

void sim_set_manual(struct sim *sim, bool manual)
{
    pthread_mutex_lock(&sim->lock);
    sim->config.manual = manual;
    if (!manual)
        run_all(sim);
    pthread_mutex_unlock(&sim->lock);
}
