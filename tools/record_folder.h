/*
 * The private folder of one recording, where its processes put their ring files: PLACE/cudamem-UID/record-PID-RANDOM,
 * PID being the command's.  Both folders have mode 0700 and belong to the user.  PLACE is TMPDIR, /tmp, /var/tmp, ... on
 * disk before one in memory, as the recorder itself chooses when nobody tells it a folder.
 */
#ifndef TOOLS_RECORD_FOLDER_H
#define TOOLS_RECORD_FOLDER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_FOLDER_PREFIX "record-"

int record_folder_make(char *path, size_t size, struct error *err);

/* Remove it if it is empty. */
void record_folder_remove(const char *path);

struct record_file {
    char *path;
    int64_t pid;     /* from its name */
    bool is_alive;   /* the process still runs */
    uint32_t copy;   /* enum ring_copy: a copy that the process made of its file, and the how manieth of its kind */
    uint32_t number;
};

/* The ring files in it, the copies that processes made of theirs (whole ones), and the processes that left the mark WORD.PID (preload/preload.h).  The caller frees with
 * record_files_free(). */
int record_folder_rings(const char *folder, struct record_file **files, size_t *count, struct error *err);
int record_folder_copies(const char *folder, struct record_file **files, size_t *count, struct error *err);
int record_folder_marks(const char *folder, const char *word, struct record_file **files, size_t *count,
                        struct error *err);
void record_files_free(struct record_file *files, size_t count);

/* A folder that somebody deleted while we are in it, or hold it: nothing can be made there. */
bool record_folder_is_gone(const char *path);

#endif
