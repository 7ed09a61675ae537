import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { escapePath } from "#engine/step/fragments/mount-unit.ts";
import { mountMounted } from "#engine/modules/mount-mounted.ts";
import { withOwnStore } from "#support/nixos.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const uuid = "UUID=381fc100-a77c-5bb8-a3d1-530f66bbf153";

describe("mount.mounted", () => {
  it("wants a line in fstab and the mount with mount's default flags", () => {
    expect(stepOf(mountMounted, { path: "/srv", source: uuid, fstype: "ext4" }).want).to.deep.equal({
      fstab: `${uuid} /srv ext4 defaults,nofail 0 2`,
      mounted: uuid,
      fstype: "ext4",
      flags: "relatime rw",
    });
  });

  it("lets no missing data disk stop a boot, but a missing root", () => {
    const line = (path: string): string => stepOf(mountMounted, { path, source: uuid }).want["fstab"] ?? "";
    expect(line("/srv")).to.equal(`${uuid} /srv auto defaults,nofail 0 2`);
    expect(line("/")).to.equal(`${uuid} / auto defaults 0 1`);
  });

  it("expects the flags that the kernel will show", () => {
    const flags = (...options: string[]): string =>
      stepOf(mountMounted, { path: "/srv", source: uuid, options }).want["flags"] ?? "";
    expect(flags("noatime", "ro")).to.equal("noatime ro");
    expect(flags("nosuid", "nodev", "noexec", "exec")).to.equal("nodev nosuid relatime rw");
    expect(flags("user")).to.equal("nodev noexec nosuid relatime rw");
    expect(flags("strictatime", "errors=remount-ro")).to.equal("rw");
  });

  it("refuses device names, with the way out", () => {
    const parsed = mountMounted.args.safeParse({ path: "/srv", source: "/dev/sdb1" });
    expect(parsed.success).to.equal(false);
    expect(JSON.stringify(parsed.error)).to.contain("use UUID=");
  });

  it("takes a partition that disk.partitioned and filesystem.formatted made", () => {
    const { want } = stepOf(mountMounted, {
      path: "/srv",
      source: { disk: { serial: "S1" }, partition: "data" },
      fstype: "ext4",
    });
    expect(want["mounted"]).to.match(/^UUID=[0-9a-f]{8}-[0-9a-f]{4}-5/);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`mounts what the fstab of NixOS names, and refuses to change that fstab, on ${shell}`, async () => {
      const store = "/nix/store/00000000000000000000000000000000-etc";
      const on = withOwnStore(
        shell,
        `mkdir /mnt/root${store}`,
        `echo ${uuid} /srv ext4 noatime,nofail 0 2 >/mnt/root${store}/fstab`,
        `ln -sf ${store}/fstab /mnt/root/etc/fstab`,
      );
      const codeFor = async (...options: readonly string[]): Promise<string> => {
        const step = stepOf(mountMounted, { path: "/srv", source: uuid, fstype: "ext4", options });
        const { outcome, problem } = await runStepOn(on, step, { dryRun: true });
        return problem?.code ?? outcome;
      };
      expect([await codeFor("noatime"), await codeFor("nodev")]).to.deep.equal(["would-change", "NIXOS_MANAGED"]);
    });

  it("names units as systemd-escape does", () => {
    expect(escapePath("/var/lib/kcore/volumes1")).to.equal("var-lib-kcore-volumes1");
    expect(escapePath("/srv/a-b")).to.equal(String.raw`srv-a\x2db`);
    expect(escapePath("/.x")).to.equal(String.raw`\x2ex`);
    expect(escapePath("/")).to.equal("-");
  });

  describe("in an fstab", () => {
    let folder: string;
    let fstab: string;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), "kcore-fstab-"));
      fstab = join(folder, "fstab");
    });
    afterEach(() => rmSync(folder, { recursive: true, force: true }));

    for (const shell of shellsOf(import.meta.filename)) {
      const run = (state: string): ReturnType<typeof runStepOn> =>
        runStepOn(shell, stepOf(mountMounted, { path: "/srv/data", source: uuid, fstype: "xfs", state, fstab }), {
          bin: { systemctl: ":", findfs: "exit 1" },
        });

      it(`changes only its own line, in its place, and keeps the mode, on ${shell}`, async () => {
        const others = "# static\n\nUUID=root  /\text4 defaults 0 1";
        writeFileSync(
          fstab,
          `${others}\n/dev/sdb1  /srv/data\text4 defaults\n#/dev/x /srv/data\nLABEL=x /srv/database ext4`,
        );
        const before = statSync(fstab).mode;
        expect((await run("present")).outcome).to.equal("changed");
        expect(readFileSync(fstab, "utf8")).to.equal(
          `${others}\n${uuid} /srv/data xfs defaults,nofail 0 0\n#/dev/x /srv/data\nLABEL=x /srv/database ext4\n`,
        );
        expect(statSync(fstab).mode).to.equal(before);
        expect((await run("present")).outcome).to.equal("ok");
      });

      it(`takes its lines out, on ${shell}`, async () => {
        writeFileSync(fstab, "a /srv/data ext4\n\\x *\nb /srv/data xfs\n");
        const { outcome, have } = await run("absent");
        expect(outcome).to.equal("changed");
        expect(have["fstab"]).to.equal("a /srv/data ext4\nb /srv/data xfs");
        expect(readFileSync(fstab, "utf8")).to.equal("\\x *\n");
      });

      it(`makes a missing fstab, on ${shell}`, async () => {
        expect((await run("present")).outcome).to.equal("changed");
        expect(readFileSync(fstab, "utf8")).to.equal(`${uuid} /srv/data xfs defaults,nofail 0 0\n`);
      });
    }
  });
});
