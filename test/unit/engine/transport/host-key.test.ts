import { expect } from "chai";
import { hostKeyAlgorithms, hostKeyOf, hostKeyTrust, parseHostKey, type HostKey } from "#engine/transport/host-key.ts";

const text = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFYpCBBzdpl8O2KT2Yu7wZdMOb71kMHvaLiFs0BDE4dv";

function known(line: string): HostKey {
  const key = parseHostKey(line);
  if (!key) throw new Error(`no key: ${line}`);
  return key;
}

describe("host keys", () => {
  const a = known(text);
  const b = known(text.replace("E4dv", "E4dA"));
  const trust = (keys: HostKey[], revoked: HostKey[] = []) => ({ keys, revoked, source: "test", ignored: [] });

  it("have the fingerprint that ssh-keygen -l prints", () =>
    expect(a.fingerprint).to.equal("SHA256:46VPz0O6KFttIjTvShkutdDPV8HVeY8s3hswUdufa1c"));

  it("are read with a comment, but not with another type than their blob's", () => {
    expect(parseHostKey(`${text} root@n1`)).to.deep.equal(a);
    for (const invalid of [
      "",
      "ssh-ed25519",
      "ssh-ed25519 !!!!",
      text.replace("ssh-ed25519", "ssh-rsa"),
      "ssh-ed25519 AAAA",
    ])
      expect(parseHostKey(invalid), invalid).to.equal(undefined);
  });

  it("are not read from a blob whose type has control characters", () => {
    const blob = Buffer.concat([Buffer.from([0, 0, 0, 4]), Buffer.from("\u001b[2J"), Buffer.alloc(20)]);
    expect([hostKeyOf(blob), hostKeyOf(Buffer.alloc(0))]).to.deep.equal([undefined, undefined]);
  });

  it("are trusted only if they are equal and not revoked (S-1)", () => {
    expect([hostKeyTrust(a, trust([a, b])), hostKeyTrust(a, trust([]))]).to.deep.equal(["trusted", "unknown"]);
    expect([hostKeyTrust(a, trust([b])), hostKeyTrust(a, trust([a], [a]))]).to.deep.equal(["changed", "revoked"]);
  });

  it("put the algorithms of known keys first, without SHA-1", () => {
    expect(hostKeyAlgorithms([{ ...a, type: "ssh-rsa" }]).slice(0, 2)).to.deep.equal(["rsa-sha2-512", "rsa-sha2-256"]);
    expect(hostKeyAlgorithms([])[0]).to.equal("ssh-ed25519");
    expect(hostKeyAlgorithms([])).not.to.include("ssh-rsa");
    expect(new Set(hostKeyAlgorithms([a, b])).size).to.equal(hostKeyAlgorithms([a, b]).length);
  });
});
