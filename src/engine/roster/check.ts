import type { SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { hostPort } from "#engine/step/host-port.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import type { NodeEntry, Roster } from "./roster.ts";

/** Reports each jump that names neither a node nor a jump host, and each route that leads back to its start. */
export function checkJumps(roster: Roster, positions: ReadonlyMap<string, SourcePosition>, problems: Problems): void {
  const jumpsOf = (name: string): readonly string[] => (roster.nodes.get(name) ?? roster.jumps.get(name))?.jump ?? [];
  const names = [...roster.nodes.keys(), ...roster.jumps.keys()];
  for (const name of names) {
    const at = roster.positions.get(name) ?? positions.get(name);
    for (const jump of jumpsOf(name)) {
      if (roster.nodes.has(jump) || roster.jumps.has(jump) || roster.positions.has(jump)) continue;
      const hint = suggestHint(jump, names, "declare it under jumps:, or name a node");
      problems.add({
        code: "ROSTER_JUMP",
        message: `“${name}” jumps over “${jump}”, which is not in the roster`,
        at,
        hint,
      });
    }
    const circle = circleFrom(name, jumpsOf);
    if (circle !== undefined)
      problems.add({
        code: "ROSTER_JUMP",
        message: `the way to “${name}” leads back to it: ${circle.join(" → ")}`,
        at,
      });
  }
}

function circleFrom(start: string, jumpsOf: (name: string) => readonly string[]): string[] | undefined {
  const seen = new Set<string>();
  const search = (name: string, path: readonly string[]): string[] | undefined => {
    for (const jump of jumpsOf(name)) {
      if (jump === start) return [...path, jump];
      if (seen.has(jump)) continue;
      seen.add(jump);
      const found = search(jump, [...path, jump]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return search(start, [start]);
}

/** Reports nodes that share an id or a {@link machineKey}: a machine must not be in a run twice (F-16). */
export function checkDuplicates({ nodes, positions }: Roster, problems: Problems): void {
  const ids = new Map<string, NodeEntry>();
  const machines = new Map<string, NodeEntry>();
  for (const node of nodes.values()) {
    const machine = machineKey(node);
    // A former id that belongs to another node would give this node that node's disks and keys.
    for (const id of [node.id, ...(node.formerIds ?? [])]) {
      report(ids.get(id), node, `id ${id}`, undefined);
      ids.set(id, ids.get(id) ?? node);
    }
    report(
      machines.get(machine),
      node,
      `address ${hostPort(node.address, node.port)}`,
      "several test targets on one machine need a stateDir each",
    );
    machines.set(machine, machines.get(machine) ?? node);
  }

  function report(first: NodeEntry | undefined, node: NodeEntry, what: string, hint: string | undefined): void {
    const at = positions.get(node.name);
    if (first !== undefined)
      problems.add({
        code: "ROSTER_DUPLICATE",
        message: `“${node.name}” has the ${what}, as “${first.name}” has`,
        at,
        hint,
      });
  }
}

/**
 * Equal for two names of one machine with one state folder (docs/runner.md, The state folder). Behind different jump hosts, one private
 * address means different machines.
 */
export function machineKey({ transport, address, port, stateDir, jump }: NodeEntry): string {
  if (transport === "local") return JSON.stringify(["local", stateDir]);
  return JSON.stringify([address.toLowerCase(), port, stateDir, jump]);
}
