/* Runs a fuzz target over the files named (and those in the folders named), without a fuzzer: the corpus as a test. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t replayed;

static int replay_file(const char *path, long length)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(length > 0 ? (size_t)length : 1);
    if (!file || !bytes || (length && fread(bytes, 1, (size_t)length, file) != (size_t)length)) {
        fprintf(stderr, "cannot read %s\n", path);
        return 1;
    }
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, (size_t)length);
    free(bytes);
    replayed++;
    return 0;
}

static int replay_path(const char *path)
{
    struct stat about;
    if (stat(path, &about)) {
        fprintf(stderr, "there is no %s\n", path);
        return 1;
    }
    if (!S_ISDIR(about.st_mode))
        return replay_file(path, (long)about.st_size);
    int status = 0;
    DIR *listing = opendir(path);
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        char inner[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        status |= replay_path(inner);
    }
    if (listing)
        closedir(listing);
    return status;
}

int main(int argc, char **argv)
{
    int status = 0;
    for (int i = 1; i < argc; i++)
        status |= replay_path(argv[i]);
    printf("%zu inputs\n", replayed);
    return status;
}
