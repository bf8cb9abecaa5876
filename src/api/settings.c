/* The allocators' settings: the environment's, then what the program sets.  Uses src/base and src/alloc. */
#include "api/library.h"

#include "base/text.h"

#include <cudamem/allocator.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Its own lock, which nothing else is taken under. */
static pthread_mutex_t values_lock = PTHREAD_MUTEX_INITIALIZER;
static bool values_are_there;
static struct settings values;
static struct text values_text;       /* as last set, right or wrong */
static struct error environment_error; /* until the program sets others */

static int set_values(const char *text, struct error *err)
{
    text_clear(&values_text);
    text_add(&values_text, text);
    int status = settings_parse(&values, text, err);
    return status || !text_failed(&values_text) ? status : error_no_memory(err);
}

static void read_environment(void)
{
    const char *text = getenv("CUDAMEM_ALLOC_CONF");
    if (values_are_there)
        return;
    values_are_there = true;
    settings_init(&values);
    if (text && set_values(text, &environment_error))
        error_prefix(&environment_error, "CUDAMEM_ALLOC_CONF: ");
}

int library_settings_check(struct error *err)
{
    pthread_mutex_lock(&values_lock);
    read_environment();
    struct error found = environment_error;
    pthread_mutex_unlock(&values_lock);
    if (found.status && err)
        *err = found;
    return found.status;
}

void library_settings(struct settings *settings, char *conf, size_t conf_size)
{
    pthread_mutex_lock(&values_lock);
    read_environment();
    *settings = values;
    if (conf && conf_size) {
        size_t length = values_text.length < conf_size - 1 ? values_text.length : conf_size - 1;
        memcpy(conf, text_string(&values_text), length);
        conf[length] = '\0';
    }
    pthread_mutex_unlock(&values_lock);
}

/* Under the settings' lock, so that no device is opened with the old ones meanwhile. */
static int set_everywhere(const char *text, struct error *err)
{
    pthread_mutex_lock(&values_lock);
    read_environment();
    environment_error.status = STATUS_OK;
    int status = set_values(text, err);
    struct settings now = values;
    pthread_mutex_unlock(&values_lock);
    for (struct library_device *d = library_next_device(0); d; d = library_next_device(d->ordinal + 1)) {
        if (!library_thread.held)
            lock_take(&d->lock);
        allocator_set_settings(d->allocator, &now);
        d->unlocks_for_segments = now.release_lock_on_device_malloc;
        if (!library_thread.held)
            lock_open(&d->lock);
    }
    return status;
}

EXPORT int cudamem_set_allocator_settings(const char *settings, cudamem_error *error)
{
    struct error err = {0};
    int status = settings ? library_settings_enter(&err) : error_set(&err, CUDAMEM_ERROR_USAGE, "no settings were given");
    if (!status) {
        status = set_everywhere(settings, &err);
        library_settings_leave();
    }
    return status ? api_report(error, &err, status) : CUDAMEM_OK;
}
