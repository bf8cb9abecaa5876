/*
 * cudamem/svg.h: pictures of GPU memory: flame graphs whose widths are bytes, one self-contained SVG each, with search and
 * zoom in a browser.
 *
 * Thread rules and errors as in cudamem/history.h.  The file appears whole or not at all.
 */
#ifndef CUDAMEM_SVG_H
#define CUDAMEM_SVG_H

#include <cudamem/error.h>
#include <cudamem/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

/* By stream, segment, state and stack.  snapshot NULL: one taken now.  path NULL: "output.svg".
 * torch.cuda.memory._save_segment_usage */
int cudamem_save_segment_usage(const char *path, const cudamem_snapshot *snapshot, cudamem_error *error);

/* By stream, state and stack.  torch.cuda.memory._save_memory_usage */
int cudamem_save_memory_usage(const char *path, const cudamem_snapshot *snapshot, cudamem_error *error);

#ifdef __cplusplus
}
#endif
#endif
