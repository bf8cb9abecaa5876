/* Rules of categories from JSON.  May use src/format, src/snapshot and src/base. */
#include "format/categories_read.h"

#include "base/array.h"
#include "base/input.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_EXACT 9007199254740992.0 /* numbers of JSON are doubles here: whole ones up to this are exact */
#define DEEPEST 8                        /* brackets inside one another: more than any rule needs */

static const char shipped[] =
#include "categories.inc"
    ;

const char *categories_shipped(void)
{
    return shipped;
}

/* Where something is wrong: rules are counted from 1. */
static int wrong(struct error *err, size_t rule, const char *key, const char *what)
{
    if (!rule)
        return error_set(err, STATUS_INPUT, "%.60s: %s", key, what);
    return error_set(err, STATUS_INPUT, "rule %zu: %.60s: %s", rule, key, what);
}

/* --- parts of a rule ----------------------------------------------------------------------------------------------- */

#define NESTED_REPEATS 4 /* '+' behind a group or another repeat: each may double what the expression compiles to */

/* Repeat counts, references back and '+' upon '+', outside of bracket expressions. */
static bool is_boundless(const char *expression)
{
    int nested = 0;
    for (const char *c = expression; *c; c++) {
        if (*c == '\\' && c[1]) {
            if (isdigit((unsigned char)c[1]))
                return true;
            c++;
        } else if (*c == '[') {
            c += c[1] == '^' ? 2 : 1;
            c += *c == ']';
            while (*c && *c != ']')
                c++;
            if (!*c)
                return false; /* regcomp() says what is wrong */
        } else if (*c == '{') {
            return true;
        } else if (*c == '+' && c > expression && strchr(")+*?", c[-1]) && ++nested > NESTED_REPEATS) {
            return true;
        }
    }
    return false;
}

static int read_expression(const cJSON *item, size_t rule, char **text, struct error *err)
{
    regex_t compiled;
    if (!cJSON_IsString(item) || !*item->valuestring || strlen(item->valuestring) > CATEGORIES_TEXT)
        return wrong(err, rule, item->string, "a regular expression is wanted, of at most 4,096 bytes");
    if (is_boundless(item->valuestring))
        return wrong(err, rule, item->string, "repeat counts {n,m}, references \\1 and + upon + are not taken");
    int failed = regcomp(&compiled, item->valuestring, REG_EXTENDED | REG_NOSUB);
    if (failed) {
        char why[120];
        regerror(failed, &compiled, why, sizeof(why));
        return wrong(err, rule, item->string, why);
    }
    regfree(&compiled);
    free(*text);
    *text = strdup(item->valuestring);
    return *text ? STATUS_OK : error_no_memory(err);
}

static int read_category(const cJSON *item, size_t rule, char **text, struct error *err)
{
    if (!cJSON_IsString(item) || !*item->valuestring || strlen(item->valuestring) > 64)
        return wrong(err, rule, item->string, "a name of 1 to 64 bytes is wanted");
    for (const char *c = item->valuestring; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return wrong(err, rule, item->string, "a name has no control characters");
    free(*text);
    *text = strdup(item->valuestring);
    return *text ? STATUS_OK : error_no_memory(err);
}

static int read_sizes(const cJSON *item, size_t number, struct category_rule *rule, struct error *err)
{
    size_t capacity = 0;
    if (!cJSON_IsArray(item) || !item->child)
        return wrong(err, number, item->string, "a list of sizes in bytes is wanted");
    free(rule->requested);
    rule->requested = NULL;
    rule->requested_count = 0;
    for (const cJSON *size = item->child; size; size = size->next) {
        double bytes = cJSON_IsNumber(size) ? size->valuedouble : -1;
        if (!(bytes >= 0 && bytes <= LARGEST_EXACT) || (double)(uint64_t)bytes != bytes)
            return wrong(err, number, item->string, "a size is a whole number of bytes");
        if (array_reserve(&rule->requested, &capacity, rule->requested_count + 1, sizeof(*rule->requested)))
            return error_no_memory(err);
        rule->requested[rule->requested_count++] = (uint64_t)bytes;
    }
    return STATUS_OK;
}

static int read_part(const cJSON *item, size_t number, struct category_rule *rule, struct error *err)
{
    const char *key = item->string;
    if (strcmp(key, "category") == 0)
        return read_category(item, number, &rule->category, err);
    if (strcmp(key, "frame") == 0)
        return read_expression(item, number, &rule->frame, err);
    if (strcmp(key, "not_frame") == 0)
        return read_expression(item, number, &rule->not_frame, err);
    if (strcmp(key, "innermost") == 0)
        return read_expression(item, number, &rule->innermost, err);
    if (strcmp(key, "requested") == 0)
        return read_sizes(item, number, rule, err);
    if (strcmp(key, "comment") == 0)
        return cJSON_IsString(item) ? STATUS_OK : wrong(err, number, key, "a text is wanted");
    if (strcmp(key, "frames") == 0) {
        if (!cJSON_IsString(item) || strcmp(item->valuestring, "none") != 0)
            return wrong(err, number, key, "it can only be \"none\"");
        rule->frames = CATEGORY_FRAMES_NONE;
        return STATUS_OK;
    }
    if (strcmp(key, "kept") == 0 || strcmp(key, "once") == 0) {
        if (!cJSON_IsTrue(item))
            return wrong(err, number, key, "it can only be true");
        *(*key == 'k' ? &rule->kept : &rule->once) = true;
        return STATUS_OK;
    }
    return wrong(err, number, key, "no condition is called that");
}

static int read_rule(const cJSON *item, size_t number, struct category_rule *rule, struct error *err)
{
    if (!cJSON_IsObject(item))
        return wrong(err, number, "rule", "an object is wanted");
    for (const cJSON *part = item->child; part; part = part->next) {
        int status = read_part(part, number, rule, err);
        if (status)
            return status;
    }
    if (!rule->category)
        return wrong(err, number, "category", "it is missing");
    if (rule->frames == CATEGORY_FRAMES_NONE && (rule->frame || rule->innermost))
        return wrong(err, number, "frames", "what has no frames has none that match");
    if (rule->once && !rule->requested_count)
        return wrong(err, number, "once", "it goes with a list of sizes");
    if (!rule->frame && !rule->not_frame && !rule->innermost && !rule->requested_count && !rule->kept && !rule->frames)
        return wrong(err, number, "rule", "it has no condition");
    return STATUS_OK;
}

/* --- the file -------------------------------------------------------------------------------------------------------- */

static int read_rules(const cJSON *list, struct category_rules *rules, struct error *err)
{
    if (!cJSON_IsArray(list))
        return wrong(err, 0, "rules", "a list is wanted");
    for (const cJSON *item = list->child; item; item = item->next) {
        if (rules->count >= CATEGORIES_RULES)
            return wrong(err, 0, "rules", "more than 1,000");
        if (array_reserve(&rules->rules, &rules->capacity, rules->count + 1, sizeof(*rules->rules)))
            return error_no_memory(err);
        struct category_rule *rule = &rules->rules[rules->count++];
        memset(rule, 0, sizeof(*rule));
        int status = read_rule(item, rules->count, rule, err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static int read_top(const cJSON *top, struct category_rules *rules, struct error *err)
{
    bool has_version = false, has_rules = false;
    if (!cJSON_IsObject(top))
        return error_set(err, STATUS_INPUT, "rules of categories are an object with a version and rules");
    for (const cJSON *item = top->child; item; item = item->next) {
        int status = STATUS_OK;
        if (strcmp(item->string, "version") == 0) {
            has_version = true;
            if (!cJSON_IsNumber(item) || item->valuedouble != 1)
                status = error_set(err, STATUS_UNSUPPORTED, "version: only version 1 of the rules is known here");
        } else if (strcmp(item->string, "rules") == 0) {
            status = has_rules ? wrong(err, 0, "rules", "they are there twice") : read_rules(item, rules, err);
            has_rules = true;
        } else if (strcmp(item->string, "replaces") == 0) {
            rules->replaces = cJSON_IsTrue(item);
            if (!cJSON_IsBool(item))
                status = wrong(err, 0, "replaces", "it is true or false");
        } else if (strcmp(item->string, "comment") != 0) {
            status = wrong(err, 0, item->string, "there is no such key");
        }
        if (status)
            return status;
    }
    if (!has_version || !has_rules)
        return wrong(err, 0, has_version ? "rules" : "version", "it is missing");
    return STATUS_OK;
}

/* Brackets are counted before the parser recurses into them. */
static bool is_deep(const char *bytes, size_t length)
{
    size_t depth = 0;
    bool is_text = false;
    for (size_t i = 0; i < length; i++) {
        if (is_text) {
            if (bytes[i] == '\\')
                i++; /* whatever it is, it ends no text */
            else
                is_text = bytes[i] != '"';
        } else if (bytes[i] == '"') {
            is_text = true;
        } else if (bytes[i] == '[' || bytes[i] == '{') {
            if (++depth > DEEPEST)
                return true;
        } else if ((bytes[i] == ']' || bytes[i] == '}') && depth) {
            depth--;
        }
    }
    return false;
}

int categories_read_memory(const void *bytes, size_t length, struct category_rules *rules, struct error *err)
{
    const char *text = bytes, *end = NULL;
    *rules = (struct category_rules){0};
    if (length > CATEGORIES_LARGEST)
        return error_set(err, STATUS_INPUT, "rules of categories of more than 1 MiB");
    if (memchr(text, 0, length) || is_deep(text, length))
        return error_set(err, STATUS_INPUT, "these are no rules of categories");
    cJSON *top = cJSON_ParseWithLengthOpts(text, length, &end, false);
    size_t left = top ? length - (size_t)(end - text) : 0;
    while (top && left && strchr(" \t\r\n", text[length - left]))
        left--;
    int status = STATUS_OK;
    if (!top)
        status = error_at(err, STATUS_INPUT, end ? (uint64_t)(end - text) : 0, "this is no JSON");
    else if (left)
        status = error_at(err, STATUS_INPUT, length - left, "something follows the rules");
    else
        status = read_top(top, rules, err);
    cJSON_Delete(top);
    if (status)
        category_rules_free(rules);
    return status;
}

int categories_read(const char *path, struct category_rules *rules, struct error *err)
{
    struct input *input;
    unsigned char *bytes = NULL;
    size_t length = 0;
    *rules = (struct category_rules){0};
    int status = input_open(path, CATEGORIES_LARGEST + 1, &input, err);
    if (status)
        return status;
    status = input_read_all(input, &bytes, &length, err);
    input_close(input);
    if (!status)
        status = categories_read_memory(bytes, length, rules, err);
    free(bytes);
    return status;
}

int categories_read_shipped(struct category_rules *rules, struct error *err)
{
    return categories_read_memory(shipped, sizeof(shipped) - 1, rules, err);
}
