import { expect } from "chai";
import { createHmac } from "node:crypto";
import { lookUpKnownHost, matchesHosts, parseKnownHosts } from "#engine/transport/known-hosts.ts";

const keyA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFYpCBBzdpl8O2KT2Yu7wZdMOb71kMHvaLiFs0BDE4dv";
const keyB = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPgb3OB2lWLLwFBrrpidraovNHw6kvm3UcO0HFYEHdyi";

function lookUp(text: string, address: string, port = 22) {
  const { keys, revoked, source } = lookUpKnownHost([parseKnownHosts(text, "known_hosts")], address, port);
  const shown = (list: typeof keys) => list.map(({ type, key }) => `${type} ${key}`);
  return { keys: shown(keys), revoked: shown(revoked), source };
}

describe("known_hosts", () => {
  it("finds a host by name, among several names, ignoring case", () => {
    expect(lookUp(`n1,N2.example ${keyA}\n`, "n2.EXAMPLE").keys).to.deep.equal([keyA]);
    expect(lookUp(`n1,n2 ${keyA}\n`, "n3").keys).to.deep.equal([]);
  });

  it("looks up a host with another port than 22 only as [host]:port", () => {
    const text = `[n1]:2222 ${keyA}\nn1 ${keyB}\n`;
    expect([lookUp(text, "n1", 2222).keys, lookUp(text, "n1").keys]).to.deep.equal([[keyA], [keyB]]);
    expect(lookUp(`n1 ${keyB}`, "n1", 2222).keys).to.deep.equal([]);
  });

  it("matches wildcards and negations", () => {
    expect(matchesHosts("*.example.com,!bad.example.com", "good.example.com")).to.equal(true);
    expect(matchesHosts("*.example.com,!bad.example.com", "bad.example.com")).to.equal(false);
    expect([matchesHosts("10.0.?.1", "10.0.7.1"), matchesHosts("10.0.?.1", "10.0.77.1")]).to.deep.equal([true, false]);
    expect([matchesHosts("!n1", "n2"), matchesHosts("[*]:2222", "[n1]:2222")]).to.deep.equal([false, true]);
  });

  it("reads a pattern as no regular expression, and in polynomial time", () => {
    expect(matchesHosts("n.1", "nx1")).to.equal(false);
    expect(matchesHosts(`${"*a".repeat(40)}b`, "a".repeat(2000))).to.equal(false);
  });

  it("matches hashed names", () => {
    const salt = Buffer.from("0123456789abcdefghij");
    const hash = createHmac("sha1", salt).update("[n1]:2222").digest("base64");
    const text = `|1|${salt.toString("base64")}|${hash} ${keyA}`;
    expect([lookUp(text, "n1", 2222).keys, lookUp(text, "n1").keys]).to.deep.equal([[keyA], []]);
    expect(lookUp(`|1|broken ${keyA}`, "n1").keys).to.deep.equal([]);
  });

  it("returns revoked keys separately", () => {
    const found = lookUp(`n1 ${keyA}\n@revoked * ${keyB}\n`, "n1");
    expect(found).to.deep.equal({ keys: [keyA], revoked: [keyB], source: "known_hosts" });
  });

  it("ignores lines that it cannot use, with place and reason", () => {
    const text = `# comment\n\n@cert-authority * ${keyA}\n@odd n1 ${keyA}\nn1 ssh-ed25519 broken\nn1\nn1 ${keyB} a comment\n`;
    const { entries, ignored } = parseKnownHosts(text, "f");
    expect(entries.map(({ hosts }) => hosts)).to.deep.equal(["n1"]);
    expect(ignored).to.deep.equal([
      "f:3: host certificates (@cert-authority) are not supported",
      "f:4: unknown marker @odd",
      "f:5: not a line of known_hosts, see sshd(8)",
      "f:6: not a line of known_hosts, see sshd(8)",
    ]);
  });
});
