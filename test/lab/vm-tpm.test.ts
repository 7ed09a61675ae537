import { constants, generateKeyPairSync, privateDecrypt } from "node:crypto";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { diskPartitioned } from "#engine/modules/disk-partitioned.ts";
import { filesystemFormatted } from "#engine/modules/filesystem-formatted.ts";
import { luksEscrowed } from "#engine/modules/luks-escrowed.ts";
import { luksOpened } from "#engine/modules/luks-opened.ts";
import { mountMounted } from "#engine/modules/mount-mounted.ts";
import { strongKey } from "#engine/step/fragments/luks.ts";
import type { Steps } from "#support/shared-line.ts";
import type { StepRun } from "#support/steps.ts";
import { LabMachine } from "#support/lab-machine.ts";

const partition = (number: number): string => `/dev/disk/by-id/virtio-v1-disk${number}-part1`;
const { publicKey, privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 3072,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});

describe("disks that a machine's TPM opens", function () {
  this.timeout(1_200_000);
  const machine = new LabMachine({ kind: "vm", disks: ["200M", "200M"], tpm: true }, "vmtpm");
  const asText = (step: StepRun): string => JSON.stringify(step, undefined, 1);
  const shell = (command: string): string => machine.line.shell(command);

  const disk = (number: number) => ({ serial: `v1-disk${number}` });
  const at = (number: number) => ({ disk: disk(number), partition: "data" });
  const opened = (number: number, by: object): Steps[number] => [luksOpened, { ...at(number), ...by }];
  const filled = (number: number, by: object): Steps => [
    [diskPartitioned, { disk: disk(number), partitions: [{ name: "data", type: "luks" }] }],
    opened(number, by),
    [filesystemFormatted, { ...at(number), encrypted: true }],
    [mountMounted, { path: `/srv/${number}`, source: { ...at(number), encrypted: true }, fstype: "ext4" }],
  ];
  const byTpm = { unlock: "tpm2" };
  const escrow: Steps = [[luksEscrowed, { publicKey }]];
  const uuid = (number: number): string => shell(`blkid -p -o value -s UUID ${partition(number)}`);
  const keyFile = (number: number): string => `/etc/kcore/luks/${uuid(number)}.key`;
  /** The key slots of a partition, as systemd-cryptenroll(1) lists them. */
  const slots = (number: number): string[] =>
    shell(`systemd-cryptenroll ${partition(number)} | awk 'NR > 1 { print $2 }'`).split(/\s+/);
  const opensBy = (number: number, how: string): string =>
    shell(`cryptsetup open --test-passphrase ${how} ${partition(number)} </dev/null >/dev/null 2>&1; echo $?`);
  /** A random key gets the cheap PBKDF of the modules, since the default one takes seconds at each use. */
  const addKey = `cryptsetup luksAddKey -q ${strongKey.join(" ")}`;
  const tokenOf = "--token-only --token-type systemd-tpm2";

  it("is refused while systemd has no TPM libraries, and nothing is made", async () => {
    await machine.line.expectAll(filled(0, byTpm).slice(0, 1), "changed");
    shell("mkdir /root/tss && mv /usr/lib/x86_64-linux-gnu/libtss2-* /root/tss");
    const refused = await machine.line.run(...opened(0, byTpm));
    expect(refused.problem?.code, asText(refused)).to.equal("TOOL_MISSING");
    expect(refused.problem?.message).to.contain("tpm2-tools");
    expect(shell(`blkid -p ${partition(0)} -o value -s TYPE`)).to.equal("");
    shell("mv /root/tss/* /usr/lib/x86_64-linux-gnu");
  });

  it("a blank disk becomes a container that the TPM opens, without a key on the node; the second run changes nothing", async () => {
    await machine.line.expectAll(filled(0, byTpm).slice(1), "changed");
    await machine.line.expectAll(filled(0, byTpm), "ok");
    expect(shell("ls /etc/kcore/luks")).to.equal(`${uuid(0)}.tpm2`);
    expect(slots(0)).to.deep.equal(["tpm2"]);
    expect(shell(`cryptsetup luksDump ${partition(0)}`)).to.match(/systemd-tpm2\n\s+tpm2-hash-pcrs:\s+7\n/);
    expect(shell("findmnt -no FSTYPE /srv/0")).to.equal("ext4");
  });

  it("a container in use moves from its key file to the TPM and back, and keeps data and recovery key", async () => {
    await machine.line.expectAll([...filled(1, {}), ...escrow], "changed");
    shell("echo kept >/srv/1/file && sync");
    const before = { key: shell(`sha256sum <${keyFile(1)}`), tab: shell("cat /etc/crypttab") };
    for (const [by, ways] of [
      [byTpm, ["recovery", "tpm2"]],
      [{}, ["password", "recovery"]],
      [byTpm, ["recovery", "tpm2"]],
    ] as const) {
      await machine.line.expectAll([opened(1, by)], "changed");
      expect(slots(1)).to.have.members(ways);
      expect(shell("cat /srv/1/file")).to.equal("kept");
      if (by !== byTpm) expect(shell(`sha256sum <${keyFile(1)}`)).to.not.equal(before.key);
      if (by !== byTpm) expect(shell("cat /etc/crypttab")).to.equal(before.tab);
    }
  });

  it("is bound to other registers on request", async () => {
    const wider = { ...byTpm, pcrs: [7, 0] };
    await machine.line.expectAll([opened(1, wider)], "changed");
    expect(shell(`cryptsetup luksDump ${partition(1)} | grep pcrs:`)).to.match(/tpm2-hash-pcrs:\s+0\+7/);
    await machine.line.expectAll([opened(1, byTpm)], "changed");
    expect(slots(1)).to.have.members(["recovery", "tpm2"]);
  });

  it("a run that died at any point is completed by the next one", async () => {
    const file = keyFile(1);
    const newKey = `head -c 64 /dev/urandom >${file} && chmod 400 ${file}`;
    const known = `${newKey} && ${addKey} ${tokenOf} ${partition(1)} ${file} </dev/null`;
    const enroll = `systemd-cryptenroll --unlock-key-file=${file} --tpm2-device=auto ${partition(1)}`;
    const died: readonly (readonly [string, object])[] = [
      [newKey, byTpm],
      [known, byTpm],
      [`${known} && ${enroll} --tpm2-pcrs=0+7`, byTpm],
      [`${known} && systemd-cryptenroll --wipe-slot=tpm2 ${partition(1)}`, byTpm],
      [`rm /etc/kcore/luks/${uuid(1)}.tpm2`, byTpm],
      [newKey, {}],
      [`touch /etc/kcore/luks/${uuid(1)}.tpm2`, {}],
      [enroll, byTpm],
    ];
    for (const [command, by] of died) {
      shell(command);
      const finished = await machine.line.run(...opened(1, by));
      // Each changed step has probed again: all is in order.
      expect(finished.outcome, `${command}: ${asText(finished)}`).to.equal("changed");
      expect(slots(1)).to.have.members(by === byTpm ? ["recovery", "tpm2"] : ["password", "recovery"]);
    }
  });

  it("all are open again after a power cut, and a run changes nothing", async () => {
    machine.line.drop();
    await machine.node.powerCut();
    await machine.node.start();
    expect(shell("cat /srv/1/file; findmnt -no FSTYPE /srv/0")).to.equal("kept\next4");
    await machine.line.expectAll([...filled(0, byTpm), ...filled(1, byTpm), ...escrow], "ok");
  });

  it("another TPM opens nothing; the recovery key gives a key file, with which the next run binds the new TPM", async () => {
    machine.line.drop();
    await machine.node.powerCut();
    await rm(join(dirname(machine.node.consoleLog), "tpm"), { recursive: true });
    await machine.node.start();
    expect(shell("timeout 120 systemctl is-system-running --wait; findmnt /srv/1 || echo closed")).to.equal(
      "degraded\nclosed",
    );
    expect(opensBy(1, tokenOf)).to.not.equal("0");
    const refused = await machine.line.run(...opened(1, byTpm));
    expect(refused.problem?.code, asText(refused)).to.equal("LUKS_KEY_MISSING");
    const [escrowed] = [await machine.line.run(luksEscrowed, { publicKey })];
    const word = (escrowed.have["sealed"] ?? "").split(" ").find((text) => text.startsWith(uuid(1))) ?? "";
    const sealed = Buffer.from(word.split(":")[1] ?? "", "hex");
    const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" };
    const recovery = privateDecrypt({ key: privateKey, ...padding }, sealed).toString();
    shell(
      `umask 077 && printf %s ${recovery} >/run/recovery && head -c 64 /dev/urandom >${keyFile(1)} && ` +
        `${addKey} --key-file /run/recovery ${partition(1)} ${keyFile(1)}`,
    );
    await machine.line.expectAll([opened(1, byTpm)], "changed");
    expect(slots(1)).to.have.members(["recovery", "tpm2"]);
    shell("mount /srv/1");
    expect(shell("cat /srv/1/file")).to.equal("kept");
  });
});
