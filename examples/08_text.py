"""Text: a damaged sentence restored with alternatives, a typo found. The model reads the help pages that come with Python."""

from pydoc_data.topics import topics

from anyorder import AnyOrder

held_out = "assert"  # the page that it does not read
model = AnyOrder().fit([page for name, page in topics.items() if name != held_out])
print(model)

print("\nDamaged, and restored:\n")
damaged = "The simple form, __ equivalent to a st__ement that ra__es an err_r if the cond_tion is f___e."
print(damaged)
print(repr(model.restore(damaged, draws=2)))

print("\nWhat does not fit in a sentence with two typos:\n")
print(model.anomalies("The exprexsion is evaluated and the resukt is assigned to the name in the local namespace."))

print("\nDrawn on:\n")
for line in model.sample(3, given="The statement is ____________________________________________________________"):
    print(line)
