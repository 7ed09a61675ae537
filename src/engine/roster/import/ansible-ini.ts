import { KcoreError, type Problem } from "#errors/problem.ts";
import type { ForeignFile } from "./found.ts";
import type { Inventory } from "./inventory.ts";

/**
 * Reads an inventory as far as that can be done without Ansible: names of hosts, `[group]`, `[group:vars]` and plain `NAME=VALUE`.
 * @throws KcoreError ROSTER_IMPORT with the first twenty lines that Ansible could read otherwise
 */
export function readPlainInventory(inventory: Inventory, { file, text }: ForeignFile): void {
  const refused: Problem[] = [];
  let [group, isOfGroup] = ["ungrouped", false];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const words = line.trim();
    const at = { file, line: index + 1, column: 1 };
    if (words === "" || /^[#;]/.test(words)) continue;
    const heading = /^\[([\w.-]+)(:vars)?\]$/.exec(words);
    if (heading) [group, isOfGroup] = [heading[1] ?? "", heading[2] !== undefined];
    const [name = "", ...rest] = words.split(/\s+/);
    const pairs = (isOfGroup ? [words.replace(/\s*=\s*/, "=")] : rest).map(readPair);
    if (!heading && (pairs.includes(undefined) || (!isOfGroup && !/^[A-Za-z0-9][\w.-]*$/.test(name))))
      refused.push({ ...unsure, message: "this line cannot be read with certainty without Ansible", at });
    else {
      const owner = inventory.groupFor(group, at);
      const { vars } = heading || isOfGroup ? owner : inventory.hostFor(name, at);
      if (!heading && !isOfGroup) owner.hosts.add(name);
      for (const pair of heading ? [] : pairs) if (pair) vars.set(pair.key, { value: pair.value, at });
    }
  }
  if (refused.length > 0) throw new KcoreError(refused.slice(0, 20));
}

/** The common fields of a problem where kcore's own reader refuses an inventory. */
export const unsure = {
  code: "ROSTER_IMPORT",
  hint: "install ansible-core, or import what it prints elsewhere: ansible-inventory -i FILE --list | kcore roster import --from ansible -",
  conceal: true,
} as const;

/** `NAME=VALUE` with a value that means the same to a shell, to Python and to YAML: a word, an address, a number. */
function readPair(pair: string): { readonly key: string; readonly value: unknown } | undefined {
  const [, key, text = ""] = /^(\w+)=(\S+)$/.exec(pair) ?? [];
  if (key === undefined) return undefined;
  if (/^(0|[1-9]\d{0,14})$/.test(text)) return { key, value: Number(text) };
  if (text === "True" || text === "False") return { key, value: text === "True" };
  return text !== "None" && /^([A-Za-z~/][\w.@:/~+-]*|\d+(\.\d+){3})$/.test(text) ? { key, value: text } : undefined;
}
