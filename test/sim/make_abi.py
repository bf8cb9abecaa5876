"""Facts about our declarations as a C table: python3 make_abi.py OURS.h OUT.c TABLE.

Each enumerator's and plain macro's value, each type's size, each member's offset and size.  The same file is compiled
against our header and against the real one.
"""
import re
import sys

# Members that stand for others in our own structures.
OWN = {"CUlaunchAttributeValue": {"others"}, "struct cudaDeviceProp": {"textures"}}


def members(body):
    """Names of the members at the outer level of a structure's body; of nested structures, with the outer name."""
    names, depth, start, prefix = [], 0, 0, []
    tokens = re.findall(r"[{};]|[^{};]+", body)
    stack = []
    pending = ""
    for token in tokens:
        if token == "{":
            stack.append([])
            pending = ""
        elif token == "}":
            inner = stack.pop()
            pending = ("nested", inner)
        elif token == ";":
            if isinstance(pending, tuple):
                found = [(n,) for n in names_of(pending[2])] if len(pending) == 3 else []
                result = []
                for (outer,) in found:
                    result += [outer + "." + n for n in pending[1]]
                    result.append(outer)
            else:
                result = names_of(pending)
            (stack[-1] if stack else names).extend(result)
            pending = ""
        elif isinstance(pending, tuple):
            pending = (pending[0], pending[1], "x " + token)
        else:
            pending = token
    return names


def names_of(declaration):
    declaration = re.sub(r"\[[^\]]*\]", "", declaration).strip()
    if not declaration or "(" in declaration:
        return []
    first, *rest = declaration.split(",")
    return [re.search(r"(\w+)\s*$", part).group(1) for part in [first] + rest]


def main(source, target, table):
    text = open(source).read()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("\\\n", " ")
    facts = []
    for name, value in re.findall(r"^#define ((?:CU|cuda)\w+) ((?:0x)?[0-9a-fA-F]+u?)$", text, flags=re.M):
        facts.append(name)
    results = re.search(r"#define CUDA_ABI_RESULTS\(X\)(.*)", text)
    if results:
        facts += re.findall(r"X\((\w+),", results.group(1))
    for body in re.findall(r"enum\s*\w*\s*\{([^}]*)\}", text):
        facts += [re.match(r"\s*(\w+)", item).group(1) for item in body.split(",") if item.strip() and "(" not in item]
    inner = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*"
    for body, name in re.findall(r"typedef (?:struct|union) \w+ \{(%s)\} (\w+);" % inner, text):
        facts.append("sizeof(%s)" % name)
        facts += ["M(%s, %s)" % (name, m) for m in members(body) if m not in OWN.get(name, ())]
    for name, body in re.findall(r"^struct (\w+) \{(%s)\};" % inner, text, flags=re.M):
        name = "struct " + name
        facts.append("sizeof(%s)" % name)
        facts += ["M(%s, %s)" % (name, m) for m in members(body) if m not in OWN.get(name, ())]
    for name in re.findall(r"^typedef [^{}()]*?(\w+);", text, flags=re.M):
        facts.append("sizeof(%s)" % name)
    facts = list(dict.fromkeys(facts))
    with open(target, "w") as file:
        file.write("#include <stddef.h>\n#define M(type, member) "
                   "(offsetof(type, member) * 65536 + sizeof(((type *)0)->member))\n"
                   "const struct fact { const char *name; long long value; } %s[] = {\n" % table)
        for fact in facts:
            file.write("    {\"%s\", (long long)(%s)},\n" % (fact, fact))
        file.write("    {0, 0}};\n")
    return len(facts)


if __name__ == "__main__":
    print(main(*sys.argv[1:]), "facts")
