import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { fingerprintsOf } from "#engine/step/openpgp.ts";

const armoured = readFileSync(join(import.meta.dirname, "../../../fixtures/repository/key.asc"), "utf8");

describe("fingerprints of OpenPGP keys", () => {
  it("are those that gpg prints", () =>
    expect(fingerprintsOf(armoured)).to.deep.equal(["C92C8DA47CCE6F7767C2F2B67102A0D104A5A332"]));

  it("are those of all primary keys, with old or new packet headers, with or without armour headers and checksum", () => {
    const bytes = Buffer.from(armoured.split("\n").slice(2, 8).join(""), "base64");
    const body = bytes.subarray(2, 2 + (bytes[1] ?? 0));
    // The new form, with a length of two octets, and one of five.
    const long = Buffer.concat([Buffer.of(0xc0 | 13, 193, 8), Buffer.alloc(456)]);
    const again = Buffer.concat([Buffer.of(0xc6, 255, 0, 0, 0, body.length), body]);
    const text = Buffer.concat([bytes, long, again])
      .toString("base64")
      .replaceAll(/(.{64})/g, "$1\n")
      .trim();
    const found = fingerprintsOf(
      `-----BEGIN PGP PUBLIC KEY BLOCK-----\nVersion: 1\n\n${text}\n-----END PGP PUBLIC KEY BLOCK-----\n`,
    );
    expect(found).to.deep.equal(Array.from({ length: 2 }, () => "C92C8DA47CCE6F7767C2F2B67102A0D104A5A332"));
  });

  it("are none for private keys, damaged blocks, two blocks and texts without armour", () => {
    const secret = armoured.replace("mDME", "lDME");
    for (const text of [
      secret,
      armoured.replaceAll("PUBLIC", "PRIVATE"),
      armoured + armoured,
      armoured.split("\n").toSpliced(4, 1).join("\n"),
      armoured.replace("\n\n", "\n"),
      "",
      "mDMEawb3zBYJKwYBBAHaRw8B",
    ])
      expect(fingerprintsOf(text), text).to.deep.equal([]);
  });
});
