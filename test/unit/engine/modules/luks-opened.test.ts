import { expect } from "chai";
import { filesystemFormatted } from "#engine/modules/filesystem-formatted.ts";
import { luksOpened } from "#engine/modules/luks-opened.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const on = { disk: { serial: "S1" }, partition: "data" };

describe("luks.opened", () => {
  it("wants a container of its own, open now and at boot by its key file", () => {
    const { want } = stepOf(luksOpened, on);
    const uuid = want["uuid"] ?? "";
    expect(uuid).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-5/);
    const crypttab = `luks-${uuid} UUID=${uuid} /etc/kcore/luks/${uuid}.key luks,nofail`;
    expect(want).to.deep.equal({ type: "crypto_LUKS", uuid, opened: "yes", key: "fits", marked: "no", crypttab });
    expect(stepOf(luksOpened, { ...on, discard: true }).want["crypttab"]).to.equal(`${crypttab},discard`);
  });

  it("wants no key file but the TPM, bound to registers of which 7 is the usual one", () => {
    const { want } = stepOf(luksOpened, { ...on, unlock: "tpm2" });
    const uuid = want["uuid"] ?? "";
    const crypttab = `luks-${uuid} UUID=${uuid} - tpm2-device=auto,headless=true,luks,nofail`;
    const by = { key: "absent", marked: "yes", tpm: "PCR 7, opens: yes" };
    expect(want).to.deep.equal({ type: "crypto_LUKS", uuid, opened: "yes", crypttab, ...by });
    expect(stepOf(luksOpened, { ...on, unlock: "tpm2", pcrs: [11, 7, 0, 7] }).want["tpm"]).to.contain("PCR 0+7+11,");
    const wrong = [{ unlock: "tpm2", pcrs: [24] }, { unlock: "tpm2", pcrs: [] }, { pcrs: [7] }, { unlock: "tpm" }];
    for (const by of wrong) expect(luksOpened.args.safeParse({ ...on, ...by }).success).to.equal(false);
  });

  it("gives a container that is made anew another recovery key: that of the last one opens nothing", () => {
    for (const unlock of ["keyFile", "tpm2"]) {
      const { want, apply } = stepOf(luksOpened, { ...on, unlock });
      const text = String(apply);
      const forgotten = text.indexOf(`rm -f /etc/kcore/luks/${want["uuid"] ?? ""}.recovery`);
      expect(forgotten).to.be.greaterThan(0).and.be.lessThan(text.indexOf("luksFormat"));
    }
  });

  it("what lies in it is known by another UUID than what lies on the partition itself", () => {
    const outside = stepOf(filesystemFormatted, on).want["uuid"];
    const inside = stepOf(filesystemFormatted, { ...on, encrypted: true }).want["uuid"];
    expect(inside)
      .to.match(/^[0-9a-f-]{36}$/)
      .and.not.equal(outside);
  });

  it("finds by exactly one of partition, volume and array, and by no container", () => {
    const accepts = (args: object): boolean => luksOpened.args.safeParse(args).success;
    for (const args of [on, { vg: "vg_a", lv: "a" }, { array: "a" }]) expect(accepts(args)).to.equal(true);
    for (const args of [{}, { ...on, array: "a" }, { ...on, encrypted: true }, { array: "../a" }, { array: "1" }])
      expect(accepts(args), JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`refuses where the node has no such disk, array or open container, on ${shell}`, async () => {
      const codeOf = async (...[module, args]: Parameters<typeof stepOf>): Promise<string | undefined> =>
        (await runStepOn(shell, stepOf(module, args), { bin: { lsblk: "exit 1", lvs: "exit 1" } })).problem?.code;
      expect(await codeOf(luksOpened, on)).to.equal("DISK_NOT_FOUND");
      expect(await codeOf(luksOpened, { array: "none" })).to.equal("ARRAY_NOT_FOUND");
      expect(await codeOf(luksOpened, { vg: "vg_none", lv: "none" })).to.equal("VOLUME_NOT_FOUND");
      expect(await codeOf(filesystemFormatted, { ...on, encrypted: true })).to.equal("LUKS_CLOSED");
    });
});
