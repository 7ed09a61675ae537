import { parseReference } from "#engine/params/secret-reference.ts";
import { scalarsOf } from "#engine/encrypted-values/places.ts";
import type { SourceEntry, SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { sourceOf, type SourceAnswer } from "./sources.ts";

/** Keys of nodes, groups, defaults and jump hosts whose values name files or commands of the bastion. */
const bastionKeys: ReadonlySet<string> = new Set(["identityFile", "identityPassphrase", "consoleLog"]);

const local = "transport: local";
/** How a node becomes this machine itself. */
export const localHint = "a node with transport: local stands in a file of roster/";

/**
 * Adds a problem for each value in a source's answer that the bastion would act on (S-5): one that would read a file, run a command, open
 * a secret or log in.
 */
export function checkLimits({ name, tree }: SourceAnswer, problems: Problems): void {
  if (tree.kind !== "map") return;
  const refuse = ({ key, keyAt }: Pick<SourceEntry, "key" | "keyAt">, what = key): void =>
    problems.add({
      code: "ROSTER_SOURCE_LIMIT",
      message: `${sourceOf(name)} may not give “${what}”, which acts on this machine`,
      at: keyAt,
      hint: what === local ? localHint : "write it into a file of roster/: defaults, or a group that the answer names",
    });
  const entriesOf = (node: SourceNode | undefined): readonly SourceEntry[] =>
    node?.kind === "map" ? [...node.entries.values()] : [];
  const named = ["groups", "nodes", "jumps"].flatMap((part) => entriesOf(tree.get(part)));
  for (const layer of [tree.get("defaults"), ...named.map(({ value }) => value)]) {
    if (layer?.kind !== "map") continue;
    for (const entry of layer.entries.values()) {
      const { key, value } = entry;
      if (bastionKeys.has(key)) refuse(entry);
      if (key === "transport" && value.kind === "scalar" && value.value === "local") refuse(entry, local);
      const password = key === "sudo" && value.kind === "map" ? value.entries.get("password") : undefined;
      if (password !== undefined) refuse(password, "sudo.password");
    }
  }
  // A parameter of type secret that is given a variable reads it as a reference.
  for (const { node, path } of scalarsOf(tree, (value) => parseReference(value) !== undefined))
    refuse({ key: "", keyAt: node.at }, `a reference to a secret in ${path.join(".")}`);
}
