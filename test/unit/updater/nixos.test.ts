import { expect } from "chai";
import { casesOf } from "#support/cases/read.ts";
import { statementOf } from "#support/update-world.ts";
import { NixosWorld, nixosStatement, systemPath, type FakeSystem, type Loader } from "#support/nixos-world.ts";

const quick = { timeouts: { activateSeconds: 60, prepareSeconds: 60, rebootSeconds: 60 } };

interface Failing {
  readonly next?: FakeSystem;
  readonly kind: string;
  readonly says: string;
}
const failures = casesOf<{
  readonly nixos: Readonly<Record<string, Failing & { next: FakeSystem; activation?: object; boots: number }>>;
  /** `lasts`: a command that exceeds its time limit; `without`: a missing link. */
  readonly "nixos preparation": Readonly<
    Record<
      string,
      Failing & { spec?: object; fails?: Readonly<Record<string, string>>; lasts?: string; without?: string }
    >
  >;
}>("updater-failures.yaml");
const kernel = { kernel: "6.6.8" };

function worldWith(next: FakeSystem, loader: Loader = "systemd-boot"): NixosWorld {
  const world = new NixosWorld(loader);
  world.add("new", next);
  return world;
}

async function update(
  world: NixosWorld,
  activation: object,
  steps: readonly ("prepare" | "activate" | "roll_back")[] = ["prepare", "activate"],
): Promise<void> {
  await world.give(nixosStatement("new", { ...quick, activation }), ...steps);
}

describe("the updater, for NixOS systems", () => {
  const ways: readonly {
    readonly mode: string;
    readonly rebootPolicy: string;
    readonly next: FakeSystem;
    readonly does: readonly string[];
    readonly boots: number;
    readonly current?: string;
    readonly after?: string;
  }[] = [
    { mode: "auto", rebootPolicy: "if-required", next: {}, does: ["new switch"], boots: 0 },
    { mode: "auto", rebootPolicy: "if-required", next: kernel, does: ["old boot", "new boot"], boots: 1 },
    { mode: "auto", rebootPolicy: "never", next: kernel, does: ["new switch"], boots: 0 },
    { mode: "auto", rebootPolicy: "always", next: {}, does: ["old boot", "new boot"], boots: 1 },
    { mode: "switch", rebootPolicy: "if-required", next: {}, does: ["new switch"], boots: 0 },
    { mode: "switch", rebootPolicy: "if-required", next: kernel, does: ["new test", "old boot", "new boot"], boots: 1 },
    { mode: "switch", rebootPolicy: "never", next: kernel, does: ["new switch"], boots: 0 },
    { mode: "boot", rebootPolicy: "if-required", next: {}, does: ["old boot", "new boot"], boots: 1 },
    { mode: "boot", rebootPolicy: "never", next: kernel, does: ["new boot"], boots: 0, current: "old" },
    { mode: "test", rebootPolicy: "never", next: kernel, does: ["new test"], boots: 0, after: "old" },
    { mode: "test", rebootPolicy: "if-required", next: kernel, does: ["new test"], boots: 0, after: "old" },
  ];
  for (const { mode, rebootPolicy, next, does, boots, current = "new", after = "new" } of ways)
    it(`with ${mode}, ${rebootPolicy} and ${next === kernel ? "another kernel" : "the same kernel"} runs: ${does.join(", ")}`, async () => {
      const world = worldWith(next);
      await update(world, { mode, rebootPolicy });
      expect([world.report()?.failure, world.report()?.state]).to.deep.equal([undefined, "activated"]);
      expect([world.switches, world.boots - 1]).to.deep.equal([does, boots]);
      expect(world.state).to.include({ current, boots: after, profile: after });
      world.powerCut();
      expect(world.state).to.include({ current: after, booted: after });
    });

  it("prepares a system without activating it, and reports the reasons for a reboot", async () => {
    const world = worldWith({ ...kernel, systemd: "257.6", params: "loglevel=4 panic=30" });
    await update(world, {}, ["prepare"]);
    expect(world.report()).to.deep.include({
      state: "prepared",
      present: { id: systemPath("old"), version: "25.05.1", generation: 1 },
      targetGeneration: 2,
      needsReboot: true,
      rebootReasons: [
        "the kernel: 6.6.1 -> 6.6.8",
        "the initrd: 6.6.1 -> 6.6.8",
        "the kernel's modules: 6.6.1 -> 6.6.8",
        "systemd: 257.5 -> 257.6",
        "the kernel's parameters: loglevel=4 -> loglevel=4 panic=30",
      ],
    });
    expect([world.state, world.switches]).to.deep.equal([
      { current: "old", booted: "old", boots: "old", profile: "old" },
      [],
    ]);
  });

  it("reports what stays as booted if no reboot is allowed", async () => {
    const world = worldWith({ systemd: "257.6" });
    await update(world, { rebootPolicy: "never" }, ["prepare"]);
    expect(world.report()).to.deep.include({
      needsReboot: false,
      rebootReasons: ["systemd: 257.5 -> 257.6; it stays as it was booted"],
    });
  });

  it("truncates kernel parameters and versions in reports", async () => {
    const world = worldWith({ params: `panic=30 ${"x=1 ".repeat(200)}`, version: `25.05.1-${"x".repeat(300)}` });
    await update(world, { rebootPolicy: "never" });
    expect([world.report()?.state, world.journal().report?.present.version.length]).to.deep.equal(["activated", 200]);
    expect(world.report()?.rebootReasons?.[0]).to.match(/^the kernel's parameters: .*; it stays as it was booted$/);
  });

  it("refuses a target with a name that is too long for reports", async () => {
    const world = worldWith({});
    const target = { ...nixosStatement("new").spec.target, systemProfile: "x".repeat(1_000) };
    await world.give(nixosStatement("new", { ...quick, target }), "prepare");
    expect([world.report()?.failure?.kind, world.report()?.failure?.message]).to.deep.equal([
      "refused",
      "the target's name has more than 1000 characters",
    ]);
  });

  for (const loader of ["systemd-boot", "grub"] as const)
    it(`boots the new system once with ${loader}, and the old one by default until the new one has held`, async () => {
      const world = worldWith(kernel, loader);
      const seen: unknown[] = [];
      world.onEffect = (what) => {
        if (what === "systemctl reboot") seen.push(world.once, world.state);
      };
      await update(world, {});
      expect(seen).to.deep.equal([2, { current: "old", booted: "old", boots: "old", profile: "new" }]);
      expect(world.reports.map(({ state }) => state)).to.deep.equal(
        "preparing prepared activating rebooting activated".split(" "),
      );
      expect(world.state).to.deep.equal({ current: "new", booted: "new", boots: "new", profile: "new" });
    });

  it("warns if the boot loader cannot boot a generation once, and makes the new one the default", async () => {
    const world = worldWith(kernel, "none");
    await update(world, {}, ["prepare"]);
    expect(world.report()?.rebootReasons?.at(-1)).to.equal(
      "the boot loader cannot boot a generation once: a system that does not boot needs an operator at the machine",
    );
    await update(world, {}, ["activate"]);
    expect([world.report()?.state, world.switches, world.state.booted]).to.deep.equal([
      "activated",
      ["new boot"],
      "new",
    ]);
  });

  for (const [where, mounts, isOnce] of [
    [
      "on a partition",
      "/dev/vg/root / btrfs rw 0 0\n/dev/sda1 /boot ext4 rw 0 0\n/dev/sda2 /boot/efi vfat rw 0 0",
      true,
    ],
    ["on Btrfs", "/dev/sda1 / btrfs rw 0 0", false],
    ["on LVM", "/dev/sda1 /bootx ext4 rw 0 0\n/dev/mapper/vg-root / ext4 rw 0 0", false],
    ["on a RAID", "/dev/sda1 / ext4 rw 0 0\n/dev/sda1 /boot ext4 rw 0 0\n/dev/md127 /boot ext4 rw 0 0", false],
    ["at an unknown place", "", false],
  ] as const)
    it(`${isOnce ? "boots" : "does not boot"} a generation once with GRUB ${where}${isOnce ? "" : ", where GRUB cannot reset the entry"}`, async () => {
      const world = worldWith(kernel, "grub");
      world.files.set("/proc/self/mounts", `${mounts}\n`);
      await update(world, {});
      expect(world.switches).to.deep.equal(isOnce ? ["old boot", "new boot"] : ["new boot"]);
      expect(
        world.report()?.rebootReasons?.some((reason) => reason.includes("cannot boot a generation once")),
      ).to.equal(!isOnce);
    });

  for (const [what, trial] of [
    ["a trial that an operator ended", JSON.stringify({ loader: "systemd-boot", path: "/x", before: "old" })],
    ["an unreadable record of a trial", "{"],
  ] as const)
    it(`ignores ${what} when it determines the default boot entry`, async () => {
      const world = worldWith(kernel);
      world.add("hand", {});
      await world.give(nixosStatement("hand", quick), "prepare", "activate");
      world.files.set(
        "/var/lib/kcore/updates/boot-once.json",
        trial.replace('"old"', JSON.stringify(systemPath("old"))),
      );
      const seen: unknown[] = [];
      world.onEffect = (what) => {
        if (what === "systemctl reboot") seen.push(world.once, world.state.boots);
      };
      const later = { name: "u2", signedAt: "2026-02-01T00:00:00.000Z" };
      await world.give({ ...nixosStatement("new", quick), ...later }, "prepare", "activate");
      expect([seen, world.report()?.state]).to.deep.equal([[3, "hand"], "activated"]);
    });

  describe("rolls back", () => {
    for (const [what, { next, activation = {}, kind, says, boots }] of Object.entries(failures.nixos))
      it(what, async () => {
        const world = worldWith(next);
        await update(world, activation);
        expect([world.report()?.state, world.report()?.failure?.kind]).to.deep.equal(["failed", kind]);
        expect(world.report()?.failure?.message).to.match(new RegExp(says));
        expect(world.state).to.deep.equal({ current: "old", booted: "old", boots: "old", profile: "old" });
        expect([world.boots - 1, world.once]).to.deep.equal([boots, undefined]);
        // A later order is not blocked.
        world.add("better", {});
        const later = { name: "u2", signedAt: "2026-02-01T00:00:00.000Z" };
        await world.give({ ...nixosStatement("better", quick), ...later }, "prepare", "activate");
        expect([world.report()?.state, world.state.current]).to.deep.equal(["activated", "better"]);
      });

    it("if the reboot does not happen, and removes the one-time boot entry", async () => {
      const world = worldWith(kernel);
      world.failures.set("systemctl reboot", { code: 0, stdout: "", stderr: "" });
      await update(world, {});
      expect([world.report()?.failure?.kind, world.once]).to.deep.equal(["reboot", undefined]);
      world.powerCut();
      expect(world.state).to.deep.equal({ current: "old", booted: "old", boots: "old", profile: "old" });
    });
  });

  describe("refuses to prepare, and changes nothing", () => {
    for (const [what, given] of Object.entries(failures["nixos preparation"]))
      it(what, async () => {
        const { next = {}, spec = {}, kind, says, fails = {}, lasts, without } = given;
        const world = worldWith(next);
        for (const [command, stderr] of Object.entries(fails))
          world.failures.set(command, { code: 1, stdout: "", stderr });
        if (without !== undefined) world.links.delete(without);
        world.onEffect = (effect) => {
          if (lasts !== undefined && effect.startsWith(lasts)) world.uptime += 61_000;
        };
        await world.give(nixosStatement("new", { ...quick, ...spec }), "prepare");
        expect([world.report()?.state, world.report()?.failure?.kind]).to.deep.equal(["failed", kind]);
        expect(world.report()?.failure?.message).to.match(new RegExp(says));
        expect([world.switches, world.state.profile, world.boots]).to.deep.equal([[], "old", 1]);
      });
  });

  it("rolls back to a system that another commit produced again since", async () => {
    const world = worldWith(kernel);
    world.add("other", {});
    const of = (system: string, month: number) => {
      const fields = { name: `u${month}`, signedAt: `2026-0${month}-01T00:00:00.000Z` };
      return { ...nixosStatement(system, quick), ...fields };
    };
    await world.give(of("other", 1), "prepare", "activate");
    await world.give(of("new", 2), "prepare", "activate");
    // Another commit with the same system.
    world.add("again", {});
    const { links } = world;
    const [path, again] = [systemPath("other"), systemPath("again")];
    world.onEffect = () => links.forEach((to, link) => to === again && links.set(link, path));
    await world.give(of("again", 3), "prepare");
    await world.give(of("new", 2), "roll_back");
    expect([world.report()?.state, world.report()?.failure]).to.deep.equal(["rolled_back", undefined]);
    expect(world.state).to.include({ current: "other", profile: "other" });
  });

  it("refuses a statement older than its present one, also during a step of another kind", async () => {
    const world = worldWith({});
    await world.give({ ...nixosStatement("new", quick), signedAt: "2026-03-01T00:00:00.000Z" }, "prepare", "activate");
    const [version, older] = ["0.2.0", { ...nixosStatement("old", quick), signedAt: "2026-01-01T00:00:00.000Z" }];
    world.order("prepare", { ...statementOf(version, quick), signedAt: "2026-01-01T00:00:00.000Z" }, { seq: 10 });
    world.onEffect = (what) => {
      if (!what.startsWith("sh -c")) return;
      world.onEffect = () => undefined;
      world.order("prepare", older, { seq: 11 });
    };
    await world.live();
    expect([world.report()?.fence.seq, world.report()?.failure?.kind, world.journal().brings]).to.deep.equal([
      11,
      "refused",
      "system",
    ]);
  });

  it("waits for an activation that a killed updater began", async () => {
    const world = worldWith({});
    await update(world, {}, ["prepare"]);
    let waits = 3;
    const { onEffect } = world;
    world.failures.set("systemctl show -p ActiveState", { code: 0, stdout: "active\n", stderr: "" });
    world.onEffect = (what) => {
      onEffect(what);
      if (what.startsWith("systemctl show -p ActiveState") && waits-- === 0) world.failures.clear();
    };
    await update(world, {}, ["activate"]);
    expect([world.report()?.state, waits]).to.deep.equal(["activated", -1]);
  });
});
