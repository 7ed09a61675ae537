import { expect } from "chai";
import { commandRun } from "#engine/modules/command-run.ts";
import { cronManaged } from "#engine/modules/cron-managed.ts";
import { directoryManaged } from "#engine/modules/directory-managed.ts";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { fileAbsent } from "#engine/modules/file-absent.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { filesystemFormatted } from "#engine/modules/filesystem-formatted.ts";
import { groupManaged } from "#engine/modules/group-managed.ts";
import { httpReady } from "#engine/modules/http-ready.ts";
import { kernelModuleLoaded } from "#engine/modules/kernel-module-loaded.ts";
import { limitsSet } from "#engine/modules/limits-set.ts";
import { mountMounted } from "#engine/modules/mount-mounted.ts";
import { nixInstalled } from "#engine/modules/nix-installed.ts";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { packageInstalled } from "#engine/modules/package-installed.ts";
import { rebootDone } from "#engine/modules/reboot-done.ts";
import { registry } from "#engine/modules/registry.ts";
import { serviceRunning } from "#engine/modules/service-running.ts";
import { serviceStopped } from "#engine/modules/service-stopped.ts";
import { symlinkManaged } from "#engine/modules/symlink-managed.ts";
import { sysctlSet } from "#engine/modules/sysctl-set.ts";
import { unitManaged } from "#engine/modules/unit-managed.ts";
import { userManaged } from "#engine/modules/user-managed.ts";
import { waitFor } from "#engine/modules/wait-for.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import { DryRunDependencies } from "#engine/program/dry-run-dependencies.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import type { Survival } from "#engine/step/effects.ts";
import { plannedStep, stepOf } from "#support/steps.ts";

/** A module with its arguments, and keys of the step. */
type StepSource = readonly [ModuleDefinition, object, Partial<PlannedStep>?];

function planOf(id: string, [module, args, keys]: StepSource): PlannedStep {
  return plannedStep(stepOf(module, args), { id, title: id, module: module.name, ...keys });
}

const file = (path: string, more: object = {}): StepSource => [fileManaged, { path, content: "x", ...more }];
const folder = (path: string, more: object = {}): StepSource => [directoryManaged, { path, ...more }];
const absent = (path: string, more: object = {}): StepSource => [fileAbsent, { path, ...more }];
const packages: StepSource = [packageInstalled, { name: "nginx" }];
const command = (cmd: string, keys: Partial<PlannedStep> = {}): StepSource => [commandRun, { cmd }, keys];
const module = (options: object): StepSource => [kernelModuleLoaded, { name: "loop", options }];
const job: StepSource = [cronManaged, { name: "a", schedule: "@daily", command: "true", user: "ops" }];
const disk = { serial: "S1" };
const parted: StepSource = [diskPartitioned, { disk, partitions: [{ name: "p" }] }];
const mounted: StepSource = [mountMounted, { path: "/srv/m", source: "LABEL=x" }];
const bob: StepSource = [userManaged, { name: "bob" }];
const fileOfBob = file("/srv/a", { owner: "bob" });
const opened: StepSource = [sysctlSet, { name: "fs.nr_open", value: 2_000_000 }];
const limit = (item: string): StepSource => [
  limitsSet,
  { name: "a", limits: [{ domain: "a", item, value: 2_000_000 }] },
];
const web: StepSource = [serviceRunning, { name: "web" }];
const unit: StepSource = [unitManaged, { name: "web", content: "x" }];
const answer: StepSource = [httpReady, { url: "http://127.0.0.1/" }];

/** Title, earlier step, later step, and the Survival of the later step's verdict (effects.ts); `-`: it does not depend on the earlier step. */
const table: readonly (readonly [string, StepSource, StepSource, Survival | "-"])[] = [
  ["the same file", file("/srv/a"), file("/srv/a"), "00"],
  ["a setting of the kernel's, a limit below it", opened, limit("nofile"), "00"],
  ["a setting of the kernel's, a limit of another kind", opened, limit("nproc"), "-"],
  ["a file of modprobe's, a module's options", file("/etc/modprobe.d/a.conf"), module({ x: 1 }), "00"],
  ["a file of modprobe's, a module without options", file("/etc/modprobe.d/a.conf"), module({}), "-"],
  ["a user, a job in the user's name", [userManaged, { name: "ops" }], job, "22"],
  ["another user, a job", [userManaged, { name: "ann" }], job, "-"],
  ["another file", file("/srv/a"), file("/srv/ab"), "-"],
  ["a file removed", absent("/srv/a"), file("/srv/a"), "00"],
  ["a tree removed, a file in it", absent("/srv/a", { recurse: true }), file("/srv/a/b/c"), "00"],
  ["a file, its tree removed", file("/srv/a/b"), absent("/srv/a", { recurse: true }), "00"],
  ["a link in place of the folder", [symlinkManaged, { path: "/srv/a", target: "b" }], file("/srv/a/f"), "00"],
  ["a folder of root's, a file in it", folder("/srv/a"), file("/srv/a/b"), "22"],
  [
    "a folder of a user's, a file of that user's",
    folder("/srv/a", { owner: "bob" }),
    file("/srv/a/b", { owner: "bob" }),
    "22",
  ],
  ["a folder of a user's, a file of root's", folder("/srv/a", { owner: "bob" }), file("/srv/a/b"), "20"],
  ["a folder that all may write to", folder("/srv/a", { mode: "0777" }), file("/srv/a/b"), "20"],
  ["a folder, and another one's file", folder("/srv/a"), file("/srv/b"), "-"],
  ["a folder with all in it", folder("/srv/a", { owner: "bob", recurse: ["owner"] }), file("/srv/a/b"), "00"],
  [
    "a file whose folders are made",
    file("/srv/a/b/c", { makeDirs: true }),
    folder("/srv/a", { makeDirs: false }),
    "20",
  ],
  ["a mount, a file beneath", [mountMounted, { path: "/srv", source: "LABEL=x" }], file("/srv/a"), "00"],
  ["a mount that goes, its folder", [mountMounted, { path: "/srv/m", state: "absent" }], absent("/srv/m"), "00"],
  ["a folder, a mount on it", folder("/srv/m"), mounted, "22"],
  ["packages, a file removed", packages, absent("/usr/share/x"), "01"],
  ["packages, a configuration file", packages, file("/etc/nginx/x"), "21"],
  ["packages, a file of their folders", packages, file("/usr/share/x"), "11"],
  ["packages, a folder with all in it", packages, folder("/etc/a", { owner: "bob", recurse: ["owner"] }), "11"],
  ["packages, a file outside the system's folders", packages, file("/data/x"), "-"],
  ["packages, a command with creates", packages, command("true", { creates: "/var/x" }), "11"],
  ["packages, a wait for a path's absence", packages, [waitFor, { absent: "/var/x" }], "01"],
  ["packages, a step with its tools", packages, parted, "12"],
  ["another program, a step with its tools", file("/usr/local/bin/x"), parted, "-"],
  ["the tool itself, a step with its tools", file("/usr/local/sbin/sgdisk"), parted, "12"],
  ["a program in a folder of PATH's", file("/opt/tools/x"), [commandRun, { argv: ["x"] }], "12"],
  ["packages, a file in /srv", packages, file("/srv/www/x"), "-"],
  ["packages, kcore's own", packages, file("/etc/kcore/x"), "-"],
  ["packages, a unit's text", packages, unit, "-"],
  ["Nix, a user", [nixInstalled, {}], [userManaged, { name: "www" }], "-"],
  ["Nix, packages", [nixInstalled, {}], packages, "21"],
  [
    "Nix, its profile",
    [nixInstalled, {}],
    [nixProfile, { path: "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.1.0" }],
    "00",
  ],
  ["packages, a user", packages, [userManaged, { name: "www" }], "21"],
  ["packages, packages", packages, [packageInstalled, { name: "libfoo" }], "21"],
  ["packages, packages away", packages, [packageInstalled, { name: "libfoo", state: "absent" }], "01"],
  ["packages, a service", packages, [serviceRunning, { name: "nginx" }], "21"],
  ["packages, a service that shall not run", packages, [serviceStopped, { name: "nginx" }], "01"],
  ["packages, a command that always runs", packages, command("true"), "-"],
  ["packages, a program", packages, [commandRun, { argv: ["nginx", "-t"] }], "12"],
  ["packages, a shell text", packages, command("true", { unless: "nginx -t" }), "11"],
  ["packages, an answer", packages, answer, "11"],
  ["a user, a file of that user's", bob, fileOfBob, "22"],
  ["a user with a number, a file of that user's", [userManaged, { name: "bob", uid: 7 }], fileOfBob, "02"],
  ["a user, another one's file", bob, file("/srv/a", { owner: "eve" }), "-"],
  ["a user, what runs as that user", bob, command("true", { runAs: "bob" }), "22"],
  [
    "a group that goes, a file of the group's",
    [groupManaged, { name: "old", state: "absent" }],
    file("/srv/a", { group: "old" }),
    "00",
  ],
  ["a group, a user in it", [groupManaged, { name: "team" }], [userManaged, { name: "bob", groups: ["team"] }], "22"],
  ["a unit, its service", unit, web, "20"],
  ["a unit, another service", unit, [serviceRunning, { name: "db" }], "-"],
  ["a service, an answer", web, answer, "00"],
  ["a file, an answer", file("/srv/a"), answer, "-"],
  ["a file, a wait for it", file("/srv/a"), [waitFor, { path: "/srv/a" }], "00"],
  ["a disk, its filesystem", parted, [filesystemFormatted, { disk, partition: "p" }], "00"],
  ["a disk, another one's filesystem", parted, [filesystemFormatted, { disk: { serial: "S2" }, partition: "p" }], "-"],
  ["a boot, a file in memory", [rebootDone, { always: true }], file("/run/x"), "00"],
  ["a boot, a file", [rebootDone, { always: true }], file("/srv/x"), "-"],
  ["a command that names the file's folder", command("tar -C /opt/app -xf /tmp/x"), file("/opt/app/conf"), "00"],
  ["a command that names another", command("touch /srv/b"), file("/srv/a"), "-"],
  ["a command that names the service", command("systemctl stop web"), web, "00"],
  ["a command, a shell text", command("make"), command("x", { onlyIf: "test -e y" }), "11"],
  ["a shell text that names the file", file("/srv/a"), command("x", { unless: "grep -q y /srv/a" }), "00"],
  ["a folder, a shell text that names it", folder("/srv/a"), command("x", { unless: "test -d /srv/a" }), "00"],
  [
    "a folder, a shell text that names what is in it",
    folder("/srv/a"),
    command("x", { unless: "test -d /srv/a/b" }),
    "-",
  ],
  ["a shell text that names another", file("/srv/a"), command("x", { unless: "grep -q y /srv/b" }), "-"],
  ["a command that creates the file", command("x", { creates: "/srv/a" }), file("/srv/a"), "00"],
  ["a file, a service that watches it", file("/srv/a"), [serviceRunning, { name: "web" }, { restartOn: ["1"] }], "02"],
  ["a command as requisite", command("make"), [serviceRunning, { name: "web" }, { require: ["1"] }], "00"],
  ["a command as requisite of one that always runs", command("make"), command("install", { require: ["1"] }), "-"],
];

describe("the dependency of a dry run's later step on an earlier one", () => {
  for (const [title, earlier, later, survival] of table)
    it(title, () => {
      const dependencies = new DryRunDependencies();
      dependencies.next(stepKey("1"), planOf("1", earlier));
      const { on } = dependencies.next(stepKey("2"), planOf("2", later));
      expect(on.get(stepKey("1")) ?? "-").to.equal(survival);
    });

  it("includes the folder that an earlier step makes", () => {
    const isFolderMade = (...written: readonly StepSource[]): boolean => {
      const dependencies = new DryRunDependencies();
      return (
        written
          .map((one, index) => dependencies.next(stepKey(`${index}`), planOf(`${index}`, one)).isFolderMade)
          .at(-1) ?? false
      );
    };
    expect(isFolderMade(folder("/srv/a"), file("/srv/a/b"))).to.equal(true);
    expect(isFolderMade(folder("/srv/a"), file("/srv/a/b/c"))).to.equal(false);
    expect(isFolderMade(file("/srv/a/b/x", { makeDirs: true }), file("/srv/a/b/c"))).to.equal(true);
    expect(isFolderMade(file("/srv/a/x"), file("/srv/a/c"))).to.equal(false);
  });

  it("includes users and groups that earlier steps make", () => {
    const dependencies = new DryRunDependencies();
    dependencies.next(stepKey("1"), planOf("1", [userManaged, { name: "bob" }]));
    dependencies.next(stepKey("2"), planOf("2", [groupManaged, { name: "old", state: "absent" }]));
    const { made } = dependencies.next(stepKey("3"), planOf("3", file("/srv/a", { owner: "bob", group: "old" })));
    expect(made).to.deep.equal(["bob"]);
  });

  it("is declared by every module", async () => {
    const modules = await Promise.all([...registry.values()].map((load) => load()));
    const undeclared = modules.filter(
      ({ step }) => !/effects|stepOf(Data|Process|File|CheckedFile)\b/.test(String(step)),
    );
    expect(undeclared.map(({ name }) => name)).to.deep.equal([]);
  });
});
