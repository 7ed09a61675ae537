import { Command } from "commander";
import type { ZodType } from "zod";
import { recordKinds, recordSpecs, type RecordKind } from "#api/record-schemas.ts";
import { addClusterOptions, collect, type ClusterFlags } from "../options.ts";
import type { RecordFlags } from "./change-records.ts";

const examples: Readonly<Record<RecordKind, string>> = {
  VM: "vm web --cpus 2 --memory 4GiB --disk 20GiB --image debian --networks lan --dc DC1",
  Network: "network lan --type bridge --vlan-id 12 --dc DC1",
  Image: "image debian --url https://images.example.org/debian.qcow2 --sha256 SHA256",
};
const records = "records of VMs, networks and images; kcore runs none of them";

/** Adds `kcore create vm|network|image`. */
export function addRecordCreation(create: Command): Command {
  for (const kind of recordKinds)
    addChange(create, kind, false)
      .description(kind === "VM" ? "Record a VM, and choose a node with room for it" : `Record the ${kind} of VMs`)
      .addHelpText("after", `\nExamples:\n  kcore create ${examples[kind]}\n\nThese are ${records}.`);
  return create;
}

/** `kcore set vm`. */
export function setCommand(): Command {
  const set = new Command("set").description("Change the record of a VM");
  addChange(set, "VM", true)
    .description("Change a VM's record; it keeps its node while that meets its conditions")
    .addHelpText(
      "after",
      `
Examples:
  kcore set vm web --memory 8GiB
  kcore set vm web --node n2               place it there
  kcore set vm web --dc '' --label old-    any datacenter; one label less
  kcore set vm web                         place it anew, if its node was removed`,
    );
  return set;
}

/** `kcore delete vm|network|image`. */
export function deleteCommand(): Command {
  const remove = new Command("delete").description(`Delete ${records}`);
  for (const kind of recordKinds)
    addClusterOptions(remove.command(`${kind.toLowerCase()} <name...>`))
      .description(`Delete records of kind ${kind}; nothing on a node changes`)
      .addHelpText("after", `\nExamples:\n  kcore delete ${examples[kind].split(" --")[0]}`)
      .action(async (names: readonly string[], flags: ClusterFlags) =>
        (await import("./change-records.ts")).deleteRecords(kind, names, flags),
      );
  return remove;
}

function flagOf(field: string): string {
  return `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function addChange(parent: Command, kind: RecordKind, isKept: boolean): Command {
  const command = addClusterOptions(parent.command(`${kind.toLowerCase()} <name>`));
  for (const [field, { description = "" }] of Object.entries<ZodType>(recordSpecs[kind].shape)) {
    const about = `${description.charAt(0).toLowerCase()}${description.slice(1).replace(/\.$/, "")}`;
    if (field === "networks") command.option("--networks <network>", `${about} (repeatable)`, collect);
    else command.option(`${flagOf(field)} <${field.toLowerCase()}>`, about);
  }
  return command
    .option("--label <change>", "a label, key=value; key- takes it away (repeatable)", collect)
    .action(async (name: string, flags: RecordFlags) =>
      (await import("./change-records.ts")).writeRecord(kind, name, flags, isKept),
    );
}
