import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import type { DiskInventory } from "#engine/program/disk-inventory.ts";
import type { HostKey } from "#engine/transport/host-key.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { findIn, foldersOf, listIn } from "#engine/project/folders.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { editRosterFile, ownRoster } from "../roster/own-roster.ts";
import { viewFromFlags, type ViewFlags } from "../terminal/choose-view.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { readSets } from "../watch/params.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";
import { planEntry } from "./entry.ts";
import { deviceAt } from "#engine/layout/named-disks.ts";
import { listDisks } from "./hardware.ts";
import { findMachine, withTransport, type Machine } from "../roster/find-machine.ts";
import type { MachineFlags } from "../options.ts";
import { logIn, verifyHostKey } from "./log-in.ts";
import { planInstall, type InstallPlan, type InstallRequest } from "./request.ts";

export type InstallFlags = RunFlags &
  ViewFlags &
  Pick<MachineFlags, "askPassword" | "passwordFile"> & { readonly set?: readonly string[] };

/**
 * Writes the roster entry that an install asks for, and deploys the node over SSH. Returns the exit code of the run.
 * @throws KcoreError for an impossible request, before the roster is written
 */
export async function installNode(request: InstallRequest, flags: InstallFlags): Promise<number> {
  const plan = planInstall(request);
  const run = deployRequest(flags);
  const machine = findMachine(request.node, flags.project, request.identityFile);
  process.stderr.write(`${machine.note}\n`);
  checkInstaller(plan, machine.project);
  const found = await inspectMachine(machine, plan, request, flags);
  const { name, changed, file } = await writeEntry(machine, plan, found);
  process.stderr.write(changed ? `${name} is in ${file} now\n` : `${name} stands in ${file} already\n`);
  return (await startRun(flags, { ...run, on: name }, viewFromFlags(flags))).exitCode;
}

/** The request of the run that deploys a machine, without the target. @throws KcoreError USAGE */
export function deployRequest(flags: InstallFlags): RunRequest {
  return requestOf(flags, { kind: "orchestration", name: "deploy_node" }, { params: readSets(flags.set ?? []) });
}

interface MachineFindings {
  readonly key: HostKey;
  readonly inventory: DiskInventory;
}

/** The machine's verified host key, and its disks; if these cannot be listed, none, unless the plan uses one. */
function inspectMachine(
  machine: Machine,
  plan: InstallPlan,
  request: InstallRequest,
  flags: InstallFlags,
): Promise<MachineFindings> {
  return withTransport(async (transport) => {
    const { insecure, hostKey } = request;
    const { key } = await verifyHostKey(machine, transport, omitUndefined({ insecure, hostKey }));
    const host = await logIn(machine, transport, key, flags);
    try {
      const inventory = await listDisks(host, shownTasks(flags.output)).catch((error: unknown) => {
        // An OS disk that is only recorded keeps the given name.
        if (plan.dataDisks.length > 0 || plan.vars.installOs) throw error;
        return { devices: [] };
      });
      if (!deviceAt(plan.osDisk, inventory))
        process.stderr.write(`${machine.entry.name} shows no disk ${plan.osDisk} now; only its name is recorded\n`);
      return { key, inventory };
    } finally {
      await host.close();
    }
  });
}

async function writeEntry(machine: Machine, plan: InstallPlan, found: MachineFindings) {
  const { name, file, edit } = planEntry(machine, plan, found);
  let changed = false;
  await editRosterFile(machine.project, file, (before) => {
    const text = edit(before);
    changed = text !== before.text;
    // An entry that the roster refuses is not written.
    if (changed) ownRoster(machine.project, { instead: { file, text } });
    return text;
  });
  return { name, file, changed };
}

/** The folder of states that install a system; the project's come before the shipped ones. */
const installerFolder = "states/system";

/** Checks that the wanted system has a state which installs it. @throws KcoreError USAGE */
export function checkInstaller({ vars: { installOs } }: InstallPlan, project: string): void {
  if (installOs === undefined) return;
  const folders = foldersOf(installerFolder, { project, shipped: shippedRoot() });
  if (findIn(folders, `${installOs}.yaml`)) return;
  const names = [...listIn(folders, [".yaml"]).keys()].map((file) => file.slice(0, -".yaml".length));
  throw new KcoreError({
    code: "USAGE",
    message: `nothing installs “${installOs}”: there is no ${installerFolder}/${installOs}.yaml in this project, and none is shipped`,
    hint: suggestHint(installOs, names, `there are: ${names.join(", ")}`),
  });
}
