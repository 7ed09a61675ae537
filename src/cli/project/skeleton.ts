import { clusterLine, projectFile } from "./project-cluster.ts";

/** A file of a new project. */
export interface SkeletonFile {
  readonly text: string;
  readonly mode?: number;
}

/** The files of a new project, by path; `newId` makes the ids of the example's nodes, `empty` leaves them out. */
export function skeletonOf({
  newId,
  empty,
  cluster,
}: {
  readonly newId: () => string;
  readonly empty: boolean;
  /** The project's cluster, if known. */
  readonly cluster?: string;
}): ReadonlyMap<string, SkeletonFile> {
  return new Map<string, SkeletonFile>([
    ["roster/nodes.yaml", { text: empty ? emptyRoster : exampleRoster(newId) }],
    ["orchestrate/README.md", { text: orchestrations }],
    ["states/README.md", { text: states }],
    ["templates/README.md", { text: "Handlebars templates of files that land on nodes.\n" }],
    ...(cluster === undefined ? [] : [[projectFile, { text: clusterLine(cluster) }] as const]),
    [".gitignore", { text: ignored }],
    // Git takes hooks from a folder that is versioned only where it is told to (git-config(1), core.hooksPath).
    ["hooks/pre-commit", { text: "#!/bin/sh\nexec kcore check\n", mode: 0o755 }],
  ]);
}

/** Kept out of git: runs with their records, caches, and stray keys. */
export const ignored = ".kcore/\n*.key\n*.pem\npassphrase\n";

const heading = `# The machines and how to reach them. Never a plain secret in here: this file is versioned.
# kcore roster add NAME ADDRESS adds one; kcore roster check finds mistakes.
defaults: { user: root, dc: DC1 }
`;

const emptyRoster = `${heading}nodes: {}\n`;

/** Three controllers keep a majority when one is lost. Special workloads get a node that others avoid. */
function exampleRoster(newId: () => string): string {
  return `${heading}# An example, with addresses that nobody has: put your own in their place, or take the nodes out.
groups:
  controllers: { roles: [controller] }
  workers: { roles: [worker] }
nodes:
  controller1: { address: 192.0.2.11, id: ${newId()}, groups: [controllers] }
  controller2: { address: 192.0.2.12, id: ${newId()}, groups: [controllers] }
  controller3: { address: 192.0.2.13, id: ${newId()}, groups: [controllers] }
  worker1: { address: 192.0.2.21, id: ${newId()}, groups: [workers] }
  infra1:
    address: 192.0.2.31
    id: ${newId()}
    groups: [workers]
    labels: { tier: infra }
    taints: ["dedicated=infra:NoSchedule"]
`;
}

const orchestrations = `Orchestrations of this project, one YAML file each; those that kcore ships need no copy here.
\`kcore orchestrate\` lists all of them.
`;

const states = `States of this project, one YAML file each; a file here wins over the shipped one of the same name.
\`kcore state list\` says which is used.
`;
