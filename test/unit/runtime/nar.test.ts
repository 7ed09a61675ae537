import { createHash } from "node:crypto";
import { expect } from "chai";
import { archive, base32, exportOf, narHashOf, storePathOf, type Tree } from "#runtime/nar.ts";

const file = (content: string, executable = false): Tree => ({
  type: "file",
  content: Buffer.from(content),
  executable,
});
const folder = (entries: Record<string, Tree>): Tree => ({ type: "folder", entries: new Map(Object.entries(entries)) });
const sha256 = (chunks: readonly Uint8Array[]): Buffer => createHash("sha256").update(Buffer.concat(chunks)).digest();

// Nix 2.8.0 printed these for this tree: nix-store --add, -q --hash, --dump, --export.
const tree = folder({
  sub: folder({ l: { type: "link", target: "../b" }, a: file("#!/bin/sh\n", true) }),
  b: file("hello\n"),
  B: file(""),
});
const nix = {
  path: "/nix/store/97nxm7ib6cibxczxjpjpcg80mr4xdad3-demo-1.0",
  hash: "sha256:1rrr78hanjgpars64wriplbpdyns499cs7n9wzrjkf6zhsia4idq",
  dump: "b845a2a286dfb829f3e7c91ecd5222dafa7617bd3173627456f749ab203a39e7",
  export: "dec61604c28e496835c50e0c5bb910a15ed25b05195c55e449236db11f0e4fed",
};

describe("a Nix archive", () => {
  it("equals the output of nix-store --dump", () => expect(sha256(archive(tree)).toString("hex")).to.equal(nix.dump));

  it("has the hash and store path that Nix computes", () => {
    expect(narHashOf(sha256(archive(tree)))).to.equal(nix.hash);
    expect(storePathOf("demo-1.0", sha256(archive(tree)))).to.equal(nix.path);
  });

  it("is exported like nix-store --export, without the end mark", () =>
    expect(sha256([...exportOf(tree, nix.path), new Uint8Array(8)]).toString("hex")).to.equal(nix.export));
});

describe("Nix's base 32", () => {
  it("encodes the last bits first", () => {
    expect([base32(Uint8Array.of()), base32(Uint8Array.of(0x1f))]).to.deep.equal(["", "0z"]);
    expect(base32(createHash("sha256").update("").digest())).to.equal(
      "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73",
    );
  });
});
