/*
 * Rules of categories from a JSON file (cudamem-categories(5)) or the shipped ones, which are compiled in.
 *
 * A stranger's file: length, depth, counts, types and sizes are checked; an unknown key is an error, not passed over;
 * expressions are compiled once here, so that what is returned can be used, and may not repeat by counts nor refer back,
 * which would let a short one take memory or time without bound.  Cost: the file's length.
 */
#ifndef FORMAT_CATEGORIES_READ_H
#define FORMAT_CATEGORIES_READ_H

#include "base/error.h"
#include "snapshot/category_rules.h"

#define CATEGORIES_LARGEST (1u << 20) /* bytes of a file */
#define CATEGORIES_RULES 1000u
#define CATEGORIES_TEXT 4096u         /* bytes of an expression */

/* The caller frees with category_rules_free(); on failure *rules is empty. */
int categories_read(const char *path, struct category_rules *rules, struct error *err);
int categories_read_memory(const void *bytes, size_t length, struct category_rules *rules, struct error *err);
int categories_read_shipped(struct category_rules *rules, struct error *err);

/* The shipped file's text. */
const char *categories_shipped(void);

#endif
