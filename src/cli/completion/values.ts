import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { listOrchestrations } from "#engine/orchestrate/load-orchestration.ts";
import { factCatalogue } from "#engine/facts/catalogue.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { orchestrationFolders, projectIfAny } from "../orchestrate/list-orchestrations.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { kcoreHome } from "../cluster/context-home.ts";

export interface Candidate {
  readonly value: string;
  readonly description: string;
}

interface Asked {
  readonly command: Command;
  readonly current: string;
}

type Source = (asked: Asked) => readonly Candidate[];

/** Patterns over `PATH ARGUMENT` of an operand or `--LONG VALUE` of an option, and where their values come from. */
const sources: readonly (readonly [RegExp, Source | "files"])[] = [
  [/^config use-context name$|^--context /, () => contexts().map(({ name }) => plain(name))],
  [/^-s |^--controller |^--join-controller /, () => contexts().flatMap(({ endpoints }) => endpoints.map(plain))],
  [/^--on |^orchestrate target$| target$/, targets],
  [/^orchestrate name$/, orchestrations],
  [/^--dc/, () => unique(rosterNodes().map(({ dc }) => dc))],
  [/^--role /, () => unique(rosterNodes().flatMap(({ roles }) => roles))],
  [/^--(node|target-node) (?!host)| nodes?$/, () => rosterNodes().map(nodeCandidate)],
  [/ (file|dir|path|certs-dir)$/, "files"],
];

/** The values that fit a place; nothing where nothing is known. Problems of files are silence here. */
export function valuesOf(
  place: string,
  asked: Asked,
): { readonly candidates: readonly Candidate[]; readonly files: boolean } {
  const source = sources.find(([pattern]) => pattern.test(place))?.[1];
  if (source === "files") return { candidates: [], files: true };
  try {
    return { candidates: source?.(asked) ?? [], files: false };
  } catch {
    return { candidates: [], files: false };
  }
}

function plain(value: string): Candidate {
  return { value, description: "" };
}

function unique(values: readonly string[]): readonly Candidate[] {
  return [...new Set(values)].toSorted().map(plain);
}

function rosterNodes(): readonly NodeEntry[] {
  const project = projectIfAny(undefined);
  return project === undefined ? [] : [...ownRoster(project).nodes.values()];
}

function nodeCandidate({ name, address, dc, roles }: NodeEntry): Candidate {
  return { value: name, description: [address, dc, roles.join(",")].filter((part) => part !== "").join(" ") };
}

/** Names, and once the word begins so: `role:R`, `dc:D`, `group:G`. */
function targets({ current }: Asked): readonly Candidate[] {
  const nodes = rosterNodes();
  if (current.startsWith("fact:"))
    return factCatalogue.map(({ name, about }) => ({ value: `fact:${name}`, description: about }));
  const prefix = /^(role|dc|group):/.exec(current)?.[1];
  if (prefix === undefined)
    return [...nodes.map(nodeCandidate), ...["role:", "dc:", "group:", "label:", "fact:"].map((value) => plain(value))];
  const words = { role: (n: NodeEntry) => n.roles, dc: (n: NodeEntry) => [n.dc], group: (n: NodeEntry) => n.groups };
  return unique(nodes.flatMap(words[prefix as keyof typeof words]).map((value) => `${prefix}:${value}`));
}

function orchestrations(): readonly Candidate[] {
  return [...listOrchestrations(orchestrationFolders(undefined)).keys()].map(plain);
}

/** Names and endpoints of `~/.kcore/config`, read without checks: nothing is done with them. */
function contexts(): readonly { readonly name: string; readonly endpoints: readonly string[] }[] {
  const config = parsePlainYaml(readFileSync(join(kcoreHome(), "config"), "utf8"));
  const entries = (config as { contexts?: Record<string, { controllers?: unknown }> } | null)?.contexts ?? {};
  return Object.entries(entries).map(([name, { controllers }]) => ({
    name,
    endpoints: Array.isArray(controllers) ? controllers.map(String) : [],
  }));
}
