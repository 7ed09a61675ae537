import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { unitManaged } from "#engine/modules/unit-managed.ts";
import { withOwnStore } from "#support/nixos.ts";
import { fakeSystemctl } from "#support/systemctl.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const content =
  "[Unit]\nDescription=demo\n[Service]\nExecStart=/opt/not/yet/there\n[Install]\nWantedBy=multi-user.target\n";

describe("unit.managed", () => {
  it("wants the file, root's, read by systemd", () => {
    const { want, shown } = stepOf(unitManaged, { name: "demo", content, enabled: true });
    expect(want["content"]).to.match(/^sha256:/);
    expect([want["mode"], want["owner"], want["reload"], want["enabled"]]).to.deep.equal([
      "0644",
      "root",
      "no",
      "enabled",
    ]);
    expect(shown).to.equal(content);
  });

  it("refuses no text, two texts, a text for an absent unit, and a drop-in outside its folder", () => {
    for (const args of [{}, { content, template: "x" }, { content, state: "absent" }, { content, dropin: "../x" }])
      expect(unitManaged.args.safeParse({ name: "demo", ...args }).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: string;
      let units: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-unit-"));
        units = join(folder, "system");
        mkdirSync(units);
        writeFileSync(join(folder, "unit"), "ActiveState=inactive\nUnitFileState=disabled\n");
      });
      afterEach(() => rmSync(folder, { recursive: true }));
      // This machine's own units are covered by a folder of ours; systemd-analyze is the real one.
      const run = (args: object, options: object = {}) =>
        runStepOn(
          `unshare -m sh -c 'mount --bind ${units} /etc/systemd/system && exec "$0" "$@"' ${shell}`,
          stepOf(unitManaged, { name: "demo", ...args }),
          { bin: fakeSystemctl(folder), ...options },
        );

      it("writes the unit, makes systemd read it, enables it, and finds it in order", async () => {
        const done = await run({ content, enabled: true });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(readFileSync(join(units, "demo.service"), "utf8")).to.equal(content);
        expect(readFileSync(join(folder, "calls"), "utf8")).to.contain("daemon-reload\nenable -- demo.service\n");
        expect((await run({ content, enabled: true })).outcome).to.equal("ok");
      });

      it("takes what NixOS made of its configuration for its own if it says the same, and refuses to change it else", async () => {
        const store = "/nix/store/00000000000000000000000000000000-kcore-test";
        const onNixos = (args: object) =>
          runStepOn(
            withOwnStore(
              shell,
              `mkdir /mnt/root${store}`,
              `cp ${folder}/made /mnt/root${store}/demo.service`,
              `mount --bind ${units} /mnt/root/etc/systemd/system`,
            ),
            stepOf(unitManaged, { name: "demo", ...args }),
            { bin: fakeSystemctl(folder) },
          );
        writeFileSync(join(folder, "made"), content);
        symlinkSync(`${store}/demo.service`, join(units, "demo.service"));
        const same = await onNixos({ content });
        expect(same.outcome, JSON.stringify(same)).to.equal("ok");
        const other = await onNixos({ content: `${content}# other\n` });
        expect([other.outcome, other.problem?.code]).to.deep.equal(["failed", "NIXOS_MANAGED"]);
      });

      it("writes a drop-in and removes it", async () => {
        const file = join(units, "demo.service.d/10-limits.conf");
        expect((await run({ content: "[Service]\nMemoryMax=1G\n", dropin: "10-limits" })).outcome).to.equal("changed");
        expect(existsSync(file)).to.equal(true);
        expect((await run({ state: "absent", dropin: "10-limits" })).outcome).to.equal("changed");
        expect(existsSync(file)).to.equal(false);
      });

      it("refuses what systemd does not accept, with its words, and keeps the old unit", async () => {
        await run({ content });
        const bad = await run({ content: content.replace("ExecStart", "ExecStrat") });
        expect(bad.problem?.code, JSON.stringify(bad)).to.equal("UNIT_INVALID");
        expect(bad.problem?.detail).to.contain("ExecStrat");
        expect(readFileSync(join(units, "demo.service"), "utf8")).to.equal(content);
        const dropin = await run({ content: "[Service]\nMemryMax=1\n", dropin: "x" });
        expect(dropin.problem?.detail).to.contain("MemryMax");
      });

      it("reads a changed unit again when only that is missing", async () => {
        await run({ content });
        writeFileSync(join(folder, "unit"), "NeedDaemonReload=yes\nUnitFileState=disabled\n");
        const done = await run({ content });
        expect([done.outcome, done.have["reload"], done.now["reload"]]).to.deep.equal(["changed", "yes", "no"]);
      });
    });
});
