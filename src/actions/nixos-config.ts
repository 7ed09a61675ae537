import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { nonBlankLines } from "#base/text.ts";
import { formatBytes } from "#base/units.ts";
import { openTemplates } from "#engine/expressions/template.ts";
import { type ActionContext, type ActionResult, defineAction } from "#engine/orchestrate/action.ts";
import { foldersOf } from "#engine/project/folders.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { DiskId, filesystemUuid, partitionGuid } from "#engine/step/disk-names.ts";
import { KcoreError } from "#errors/problem.ts";
import { commitFiles, isClean, writeGenerated, type GeneratedFile } from "#system/nixos/write-generated.ts";
import { configurationText, diskoText, flakeText, kcoreText } from "#system/nixos/configuration.ts";
import { readCards, type LiveMachine } from "#system/nixos/machine.ts";

/** The project's folder with the flake of its NixOS machines. */
const FOLDER = "nixos";
/** The most bytes of the flake that a machine gets. */
const LARGEST = 16 << 20;

const args = z.strictObject({
  live: z.record(z.string(), z.string()).describe("The machine's facts, as the step os.live found them."),
});
type Args = z.output<typeof args>;

/**
 * The NixOS configuration of one machine, below `nixos/` in the project: a flake, and for each machine a folder. Changes of an operator are kept.
 */
export const nixosConfig = defineAction({
  name: "nixos.config",
  summary: "Writes a machine's NixOS configuration into the project, and commits it where nothing else is uncommitted.",
  outputs: ["flake"],
  args,
  run: (given, context) => runInTurn(() => configure(given, context, { dryRun: false })),
  plan: (given, context) => configure(given, context, { dryRun: true }),
});

let lastWork: Promise<unknown> = Promise.resolve();

/** Runs the work after all earlier work: git has one index, and all machines have one flake. */
function runInTurn<T>(work: () => Promise<T>): Promise<T> {
  const next = lastWork.then(work, work);
  lastWork = next.catch(() => undefined);
  return next;
}

async function configure(
  { live }: Args,
  context: ActionContext,
  { dryRun }: { readonly dryRun: boolean },
): Promise<ActionResult> {
  const { project, node, signal, note, warn } = context;
  if (node === undefined) throw new Error("nixos.config is for the nodes of a stage: each");
  const folder = join(project, FOLDER);
  const isInstalled = live["running"] === "yes";
  const wasClean = !dryRun && (await isClean(project, signal));
  const place = `hosts/${node.name}`;
  const files = await writeGenerated(
    folder,
    {
      ...(isInstalled ? {} : await liveTexts(node, live, folder)),
      [`${place}/kcore.nix`]: kcoreNix(node, project),
    },
    { dryRun },
  );
  const written = files.filter(({ fate }) => fate === "written").map(({ path }) => `${FOLDER}/${path}`);
  for (const { path } of files.filter(({ fate }) => fate === "kept"))
    note(`${FOLDER}/${path} is kept as it was changed by hand`);
  if (written.length > 0) {
    note(`${dryRun ? "would write" : "wrote"} ${written.join(", ")}`);
    if (isInstalled && !dryRun)
      warn(
        `${written.join(", ")} changed, and ${node.name} runs NixOS already: nixos-rebuild switch --flake ${FOLDER}#${node.name}`,
      );
    if (!dryRun) await commit(context, written, wasClean);
  }
  return {
    changed: written.length > 0,
    outputs: { flake: { name: node.name, files: await flakeFiles(folder, files, foldersOfOthers(context)) } },
  };
}

async function commit({ project, node, signal, note }: ActionContext, files: readonly string[], clean: boolean) {
  const message = `nixos: the configuration of ${node?.name}`;
  const fate = await commitFiles(project, files, { isClean: clean, message, signal });
  if (fate === "committed") note(`committed as “${message}”`);
  if (fate === "staged") note("staged, not committed: the project has other changes, or git would not commit");
}

/** Texts made from the live system's facts, by path. An existing flake.nix is not among them: its release is that of all machines. @throws KcoreError NIXOS_UNSUITED */
async function liveTexts(node: NodeEntry, live: Args["live"], folder: string): Promise<Record<string, string>> {
  const machine = machineOf(node, live);
  const place = `hosts/${node.name}`;
  const isFirst = !(await readdir(folder).catch((): string[] => [])).includes("flake.nix");
  return {
    ...(isFirst ? { "flake.nix": flakeText(machine.release) } : {}),
    [`${place}/configuration.nix`]: configurationText(machine),
    [`${place}/hardware-configuration.nix`]: `${machine.hardware}\n`,
    [`${place}/disko.nix`]: diskoText(machine),
  };
}

function machineOf(node: NodeEntry, live: Args["live"]): LiveMachine {
  const { network = "", hostKeys = "", rootKeys = "", userKeys = "", consoles = "", device = "", release = "" } = live;
  const named = DiskId.safeParse(node.disks.find(({ use }) => use === "os"));
  if (!named.success) throw unsuited(node, "no disk of it has use: os in the roster");
  if (!node.name.split(".").every((label) => /^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/.test(label)))
    throw unsuited(node, "its name cannot be a host's name");
  const partition = (name: string): string =>
    partitionGuid({ node: node.name, nodeId: node.formerIds?.[0] ?? node.id }, { disk: named.data, partition: name });
  return {
    name: node.name,
    user: node.user,
    rootKeys: nonBlankLines(rootKeys),
    userKeys: nonBlankLines(userKeys),
    hostKeys: nonBlankLines(hostKeys),
    cards: readCards(network),
    consoles: nonBlankLines(consoles),
    disk: device,
    partitions: { bios: partition("bios"), esp: partition("esp"), root: partition("root") },
    release,
    hardware: live["hardware"] ?? "{ }",
  };
}

/** The text of kcore.nix: NixOS makes by it the files that deploy_node writes below /etc on other systems. @throws KcoreError NIXOS_UNSUITED */
function kcoreNix(node: NodeEntry, project: string): string {
  const { storageBackend = "filesystem", encryptDisks = false } = node.vars;
  const disks = node.disks.filter(({ use }) => use === "volumes");
  if (disks.length > 0 && encryptDisks === true)
    throw unsuited(node, "encrypted data disks (encryptDisks) are not declared in a NixOS configuration yet");
  if (disks.length > 0 && storageBackend === "zfs")
    throw unsuited(node, "a ZFS pool of data disks (storageBackend: zfs) is not declared in a NixOS configuration yet");
  const templates = openTemplates(foldersOf("templates", { project, shipped: shippedRoot() }));
  const unit = (name: string): string => String(templates.render(`${name}.hbs`, { node, vars: node.vars, params: {} }));
  const isController = node.roles.includes("controller");
  const names = [
    ...(isController ? ["kcore-controller.service"] : []),
    "kcore-node-agent.service",
    "kcore-updater.service",
    "kcore-updater.path",
  ];
  const owner = { node: node.name, nodeId: node.formerIds?.[0] ?? node.id };
  return kcoreText({
    isController,
    units: Object.fromEntries(names.map((name) => [name, unit(name)])),
    volumes:
      storageBackend === "filesystem"
        ? disks.map((disk, index) => ({
            path: `/var/lib/kcore/volumes${index === 0 ? "" : index}`,
            uuid: filesystemUuid(partitionGuid(owner, { disk: DiskId.parse(disk), partition: "data" })),
          }))
        : [],
  });
}

function unsuited({ name }: NodeEntry, why: string): KcoreError {
  return new KcoreError({ code: "NIXOS_UNSUITED", message: `${name} cannot get NixOS from kcore: ${why}` });
}

/** Folders of the roster's other machines, which this machine does not get. */
function foldersOfOthers({ node, nodes }: ActionContext): readonly string[] {
  return [...nodes.keys()].filter((name) => name !== node?.name).map((name) => `hosts/${name}/`);
}

/** All files of the flake as they are or will be, an operator's own included, except those below the folders `without`. */
async function flakeFiles(folder: string, generated: readonly GeneratedFile[], without: readonly string[]) {
  const texts = new Map<string, Uint8Array>();
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries.filter((found) => found.isFile())) {
    const path = join(entry.parentPath, entry.name).slice(folder.length + 1);
    // Hidden files, .git above all, do not belong to the flake.
    const isOthers = without.some((start) => path.startsWith(start));
    if (!isOthers && !/(^|\/)\./.test(path)) texts.set(path, await readFile(join(folder, path)));
  }
  for (const { path, text } of generated) texts.set(path, Buffer.from(text));
  const size = [...texts.values()].reduce((sum, { length }) => sum + length, 0);
  if (size > LARGEST)
    throw new KcoreError({
      code: "NIXOS_UNSUITED",
      message: `${folder} holds ${formatBytes(size)}, and all of it would go to the machine`,
      hint: "keep there what the configurations are made of, and nothing else",
    });
  return [...texts]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, bytes]) => ({
      path,
      file: join(folder, path),
      sha256: createHash("sha256").update(bytes).digest("hex"),
      size: bytes.length,
    }));
}
