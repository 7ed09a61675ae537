import { generateKeyPairSync } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { luksEscrowed } from "#engine/modules/luks-escrowed.ts";
import { rawSh, type Sh } from "#engine/step/sh.ts";
import { makeTempDir } from "#support/temp-dir.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const pem = (...[kind, options]: [string, object]): string =>
  (generateKeyPairSync as unknown as (kind: string, options: object) => { publicKey: string })(kind, {
    ...options,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  }).publicKey;
const publicKey = pem("rsa", { modulusLength: 2048 });

describe("luks.escrowed", () => {
  it("takes an RSA public key of at least 2048 bits, and nothing else", () => {
    const accepts = (key: string): boolean => luksEscrowed.args.safeParse({ publicKey: key }).success;
    expect(accepts(publicKey)).to.equal(true);
    const others = [pem("rsa", { modulusLength: 1024 }), pem("ec", { namedCurve: "P-256" }), "", "ssh-rsa AAAA"];
    for (const key of others) expect(accepts(key), key).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`is in order where kcore has made no container, on ${shell}`, async () => {
      const run = await runStepOn(shell, stepOf(luksEscrowed, { publicKey }), { bin: { cryptsetup: "exit 9" } });
      expect(run.outcome, JSON.stringify(run)).to.equal("ok");
      expect(run.have).to.deep.equal({ missing: "none", sealed: "" });
    });

  for (const shell of shellsOf(import.meta.filename))
    it(`leaves the recovery key that is there while nothing can add another, on ${shell}`, async () => {
      const folder = await makeTempDir("luks");
      try {
        const uuid = "6f1c2a52-7c1e-5f0e-9a50-0d8a3b0f4e11";
        const calls = join(folder.path, "calls");
        await writeFile(join(folder.path, "key.pem"), publicKey);
        await writeFile(join(folder.path, `${uuid}.recovery`), "another word\n");
        const step = stepOf(luksEscrowed, { publicKey });
        const here = (text: Sh): Sh =>
          rawSh(
            text
              .render({ secret: String, blob: () => join(folder.path, "key.pem") })
              .replaceAll("/etc/kcore/luks", folder.path)
              // No block device of this machine is meant.
              .replaceAll('[ -b "$device" ]', "[ -n x ]"),
          );
        // It knows every option, says what it is asked for, and opens nothing.
        const cryptsetup = `echo "$*" >>${calls}
case $1 in
  --help) echo --disable-external-tokens ;;
  status) echo " device: /dev/none" ;;
  open) exit 2 ;;
  token) [ "$2" != export ] || echo kcore-sealed ;;
  luksAddKey) exit 2 ;;
esac`;
        const attempt = async (opener: string): Promise<[string | undefined, boolean]> => {
          await writeFile(join(folder.path, opener), "");
          await writeFile(calls, "");
          const { problem } = await runStepOn(
            shell,
            { want: step.want, probe: here(step.probe), apply: here(step.apply as Sh) },
            { bin: { cryptsetup, lsblk: "echo S1" } },
          );
          const asked = await readFile(calls, "utf8");
          return [problem?.code, /luksKillSlot|token remove/.test(asked)];
        };
        expect(await attempt(`${uuid}.tpm2`)).to.deep.equal(["LUKS_KEY_MISSING", false]);
        expect(await attempt(`${uuid}.key`)).to.deep.equal(["LUKS_KEY_MISSING", false]);
      } finally {
        await folder.remove();
      }
    });
});
