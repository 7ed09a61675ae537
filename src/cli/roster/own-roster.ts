import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { trustOfProcess } from "#engine/project/project.ts";
import { loadRoster, type LoadOptions } from "#engine/roster/load-roster.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { sourceNames } from "#engine/roster/sources.ts";
import { visible } from "#errors/draw.ts";
import { readRosterFiles, rosterFileNames, type RosterText } from "#engine/roster/roster-files.ts";

/** The roster of a project, for the user of this process. @throws KcoreError as loadRoster does */
export function ownRoster(
  project: string,
  { sources, ...options }: Pick<LoadOptions, "instead" | "sources"> = {},
): Roster {
  const stale = process.env["KCORE_ROSTER_STALE"] === "1";
  const warn = (message: string): void => void process.stderr.write(`${visible(message)}\n`);
  const asked = { stale, warn, ...sources };
  return loadRoster(project, { trust: trustOfProcess(process.env), home: homedir(), sources: asked, ...options });
}

/** The same; one without entries while the project has no roster file. */
export function rosterIfAny(project: string): Roster {
  if (rosterFileNames(project).length + sourceNames(project).length > 0) return ownRoster(project);
  return { nodes: new Map(), jumps: new Map(), positions: new Map(), files: [] };
}

/** The text of a roster file, empty when it is not there yet. */
export function rosterText(project: string, file: string): string {
  const path = join(project, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/**
 * The entry that the roster would have with this text, before it is written. @throws KcoreError for a text that the
 * roster refuses
 */
export function entryWith(project: string, instead: RosterText, name: string): NodeEntry {
  const entry = ownRoster(project, { instead }).nodes.get(name);
  if (!entry) throw new Error(`the edited roster lost ${name}`);
  return entry;
}

/** The names of all groups of a project's roster; none while it has no roster file. */
export function groupNames(project: string): ReadonlySet<string> {
  const problems = new Problems();
  const files =
    rosterFileNames(project).length > 0 ? readRosterFiles(project, problems, undefined, undefined, { kept: true }) : [];
  return new Set(files.flatMap(({ groups }) => [...groups.keys()]));
}
