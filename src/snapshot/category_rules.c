/* Rules of categories as data.  Uses nothing. */
#include "snapshot/category_rules.h"

#include <stdlib.h>
#include <string.h>

void category_rules_free(struct category_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        free(rules->rules[i].category);
        free(rules->rules[i].frame);
        free(rules->rules[i].not_frame);
        free(rules->rules[i].innermost);
        free(rules->rules[i].requested);
    }
    free(rules->rules);
    memset(rules, 0, sizeof(*rules));
}
