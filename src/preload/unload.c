/*
 * dlclose: passed on, and the recorder is told that addresses may belong to other libraries now.  Uses the linker and
 * record.  What the program sees of it is the real one's: its result, its message for dlerror(), nothing of ours.
 */
#include "preload/linker.h"
#include "record/record.h"

#include <dlfcn.h>

__attribute__((visibility("default"))) int dlclose(void *handle)
{
    linker_start();
    recorder_unloads(true);
    int result = linker_close(handle);
    recorder_unloads(false);
    recorder_modules_changed();
    return result;
}
