import { consoleLogOf, type NodeRecord } from "./record.ts";

/**
 * The running nodes as a roster file (docs/rosters.md): addresses, pinned host keys, ids, disks by serial. The first
 * node that is not a BusyBox one is a controller, the others are workers; the label `lab` is a node's kind.
 */
export function labRosterText(
  nodes: readonly NodeRecord[],
  { lab, identityFile }: { lab: string; identityFile: string },
): string {
  const lines = [
    `# The running nodes of the lab “${lab}”, written by kcore lab roster. A lab that is made again has other keys and ids.`,
    "defaults:",
    "  user: root",
    "  dc: DC1",
    `  identityFile: ${identityFile}`,
    nodes.length === 0 ? "nodes: {}" : "nodes:",
  ];
  const controller = nodes.find(({ kind }) => kind !== "busybox")?.name;
  for (const { name, address, id, kind, folder, hostKey, disks, live = false } of nodes) {
    lines.push(`  ${name}:`, `    address: ${address}`, `    id: ${id}`);
    lines.push(
      `    roles: [${name === controller ? "controller" : "worker"}]`,
      `    labels: { lab: ${kind} }`,
      `    consoleLog: ${consoleLogOf({ folder })}`,
      "    hostKeys:",
      `      - ${hostKey}`,
    );
    if (disks.length === 0) continue;
    lines.push(
      "    disks:",
      ...disks.map(
        (_, index) => `      - { serial: ${serialOf(name, index)}, use: ${live && index === 0 ? "os" : "volumes"} }`,
      ),
    );
  }
  return `${lines.join("\n")}\n`;
}

/** A disk's serial as lsblk shows it. */
export function serialOf(name: string, index: number): string {
  return `${name}-disk${index}`;
}
