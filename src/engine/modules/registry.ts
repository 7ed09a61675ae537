// Made by `npm run gen:registry` from the files in this folder; do not edit.
import type { ModuleDefinition } from "../step/define.ts";

/** Every module by the name that states use, loaded on first use. */
export const registry: ReadonlyMap<string, () => Promise<ModuleDefinition>> = new Map<
  string,
  () => Promise<ModuleDefinition>
>([
  ["certificate.dropped", async () => (await import("./certificate-dropped.ts")).certificateDropped],
  ["command.run", async () => (await import("./command-run.ts")).commandRun],
  ["directory.managed", async () => (await import("./directory-managed.ts")).directoryManaged],
  ["disk.partitioned", async () => (await import("./disk-partitioned.ts")).diskPartitioned],
  ["fact.assert", async () => (await import("./fact-assert.ts")).factAssert],
  ["file.absent", async () => (await import("./file-absent.ts")).fileAbsent],
  ["file.managed", async () => (await import("./file-managed.ts")).fileManaged],
  ["filesystem.formatted", async () => (await import("./filesystem-formatted.ts")).filesystemFormatted],
  ["filesystem.grown", async () => (await import("./filesystem-grown.ts")).filesystemGrown],
  ["group.managed", async () => (await import("./group-managed.ts")).groupManaged],
  ["http.ready", async () => (await import("./http-ready.ts")).httpReady],
  ["key.generated", async () => (await import("./key-generated.ts")).keyGenerated],
  ["luks.escrowed", async () => (await import("./luks-escrowed.ts")).luksEscrowed],
  ["luks.opened", async () => (await import("./luks-opened.ts")).luksOpened],
  ["lvm.logical_volume", async () => (await import("./lvm-logical-volume.ts")).lvmLogicalVolume],
  ["lvm.physical_volume", async () => (await import("./lvm-physical-volume.ts")).lvmPhysicalVolume],
  ["lvm.volume_group", async () => (await import("./lvm-volume-group.ts")).lvmVolumeGroup],
  ["md.array", async () => (await import("./md-array.ts")).mdArray],
  ["mount.mounted", async () => (await import("./mount-mounted.ts")).mountMounted],
  ["nix.installed", async () => (await import("./nix-installed.ts")).nixInstalled],
  ["nix.profile", async () => (await import("./nix-profile.ts")).nixProfile],
  ["package.installed", async () => (await import("./package-installed.ts")).packageInstalled],
  ["port.open", async () => (await import("./port-open.ts")).portOpen],
  ["reboot.done", async () => (await import("./reboot-done.ts")).rebootDone],
  ["script.run", async () => (await import("./script-run.ts")).scriptRun],
  ["service.running", async () => (await import("./service-running.ts")).serviceRunning],
  ["service.stopped", async () => (await import("./service-stopped.ts")).serviceStopped],
  ["swap.enabled", async () => (await import("./swap-enabled.ts")).swapEnabled],
  ["symlink.managed", async () => (await import("./symlink-managed.ts")).symlinkManaged],
  ["unit.managed", async () => (await import("./unit-managed.ts")).unitManaged],
  ["user.managed", async () => (await import("./user-managed.ts")).userManaged],
  ["wait.for", async () => (await import("./wait-for.ts")).waitFor],
]);
