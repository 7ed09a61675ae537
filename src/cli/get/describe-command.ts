import { Command } from "commander";
import { formatBinary, since, until } from "#base/units.ts";
import type { NodeDetail } from "#api/schemas.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { approvalWord, certificateWord, labelPairs, statusWord, taintText } from "#tui/fleet-words.ts";
import { findNode } from "../node/find-node.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import { addClusterOptions, type ClusterFlags } from "../options.ts";
import { formatTitled, type TitledValue } from "../terminal/format-table.ts";

/** `kcore describe node`. */
export function describeCommand(): Command {
  const describe = new Command("describe")
    .description("Show everything about one node, controller or other thing of the cluster")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore describe node n1\n  kcore get node n1 -o yaml     the same for programs",
    );
  addClusterOptions(describe.command("node <node>"))
    .description("Show a node: its properties, its approval, its disks, its certificates, its open conflicts")
    .addHelpText("after", "\nExamples:\n  kcore describe node n1")
    .action(describeNode);
  return describe;
}

async function describeNode(word: string, flags: ClusterFlags): Promise<void> {
  const { ask } = await openCluster(flags);
  const node = await ask(async (client) => client.call("getNode", {}, { id: (await findNode(client, word)).id }));
  process.stdout.write(draw(node, Date.now()));
}

function draw(node: NodeDetail, now: number): string {
  const block = (title: string, rows: readonly string[]): string =>
    rows.length === 0 ? "" : `${title}:\n${rows.map((row) => `  ${cleanLine(row)}\n`).join("")}`;
  return [
    formatTitled(mainLines(node, now), 22),
    block("Disks", disksOf(node)),
    block(
      "Interfaces",
      (node.net?.interfaces ?? []).map(({ name, mac = "", addresses }) => [name, mac, ...addresses].join("  ")),
    ),
    block(
      "Certificates",
      node.certificates.map(
        ({ serial, status, current, notAfter, issuer }) =>
          `${serial}  ${certificateWord({ status, current })}  expires in ${until(notAfter, now)}  issued by ${issuer}`,
      ),
    ),
    block(
      "Conflicts",
      node.openConflicts.map(
        ({ id, key, winner, loser }) =>
          `${id}  ${key}: ${JSON.stringify(winner.value)} won over ${JSON.stringify(loser.value)}`,
      ),
    ),
  ].join("");
}

function mainLines(node: NodeDetail, now: number): readonly TitledValue[] {
  const { approvalBy, approvalReason, expected, usage, nameConflict } = node;
  const decided = [approvalWord(node), approvalBy && `by ${approvalBy}`, approvalReason && `(${approvalReason})`];
  return [
    ["Name:", node.hostname],
    ["Id:", node.id],
    ["Status:", [statusWord(node), node.reason && `(${node.reason})`].filter(Boolean).join(" ")],
    ["Approval:", decided.filter(Boolean).join(" ")],
    ["Datacenter:", node.dc],
    ["Roles:", node.roles.join(", ")],
    ["Labels:", labelPairs(node.labels).join(",")],
    ["Taints:", node.taints.map(taintText).join(", ")],
    ["Address:", node.address],
    ["Version:", node.version],
    ["Registered:", node.registered && `${node.registered} (${since(node.registered, now)} ago)`],
    ["Last heartbeat:", node.lastSeen && `${node.lastSeen} (${since(node.lastSeen, now)} ago)`],
    [
      "Certificate expires:",
      node.certificateExpires && `${node.certificateExpires} (${until(node.certificateExpires, now)})`,
    ],
    ["Public key:", node.key && `sha256:${node.key}`],
    [
      "Expected:",
      expected && `${expected.name}, ${expected.roles.join("+") || "no role"}, ${expected.dc} (${expected.source})`,
    ],
    ["CPU:", node.cpu > 0 ? `${node.cpu} cores` : ""],
    ["Memory:", node.memory > 0 ? memoryOf(node) : ""],
    ["Load:", usage?.load?.toFixed(2)],
    // kcore builds no overlay network: the roster can only exclude one.
    ["VXLAN:", node.net?.disableVxlan === true ? "not wanted" : ""],
    ["Storage:", storageOf(node)],
    [
      "Name used twice:",
      nameConflict &&
        `also by ${nameConflict.with.join(", ")}; ${nameConflict.keepsName ? "this one keeps it" : "the other keeps it"}`,
    ],
  ];
}

function memoryOf({ memory, usage }: NodeDetail): string {
  return usage?.memoryUsed === undefined
    ? formatBinary(memory)
    : `${formatBinary(usage.memoryUsed)} of ${formatBinary(memory)} used`;
}

function storageOf({ storage }: NodeDetail): string {
  if (!storage) return "";
  const { backend, volumeGroup, volumePrefix, pool, datasetPrefix, capacity, free } = storage;
  return [
    backend,
    volumeGroup && `volume group ${volumeGroup}`,
    volumePrefix && `volumes ${volumePrefix}*`,
    pool && `pool ${pool}`,
    datasetPrefix && `datasets ${datasetPrefix}*`,
    capacity !== undefined && formatBinary(capacity),
    free !== undefined && `${formatBinary(free)} free`,
  ]
    .filter(Boolean)
    .join(", ");
}

function disksOf({ storage }: NodeDetail): readonly string[] {
  return (storage?.disks ?? []).map(({ path, size, model = "", serial = "", type = "", used = false }) =>
    [path, formatBinary(size), type, model, serial, used ? "in use" : ""].filter(Boolean).join("  "),
  );
}
