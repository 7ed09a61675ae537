import { expect } from "chai";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { escapePath } from "#engine/step/fragments/mount-unit.ts";
import { sysctlPath } from "#engine/step/fragments/sysctl.ts";
import { poolGuid, poolMark } from "#engine/step/zfs-names.ts";
import { stepOf } from "#support/steps.ts";

describe("texts that modules make", () => {
  it("of mount.mounted name units as systemd-escape does", () => {
    const paths = ["/var/lib/kcore/volumes1", "/srv/a-b", "/.x", "/"].map(escapePath);
    expect(paths).to.deep.equal(["var-lib-kcore-volumes1", String.raw`srv-a\x2db`, String.raw`\x2ex`, "-"]);
  });

  it("of sysctl.set name keys as sysctl.d(5) does", () => {
    for (const key of ["net.ipv4.conf.eth0/10.rp_filter", "net/ipv4/conf/eth0.10/rp_filter"])
      expect(sysctlPath(key)).to.equal("net/ipv4/conf/eth0.10/rp_filter");
  });

  it("of zfs.pool mark a pool by its node and name, in at most 32 bytes", () => {
    const markOf = (name: string, nodeId = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11"): string =>
      poolMark(poolGuid({ node: "n1", nodeId }, name));
    expect(markOf("tank0")).to.match(/^kcore [0-9a-f]{24}$/);
    expect(new Set([markOf("tank0"), markOf("tank1"), markOf("tank0", "0")])).to.have.property("size", 3);
  });

  it("of nix.profile have the same length for one path and for a thousand", () => {
    const path = "/nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.1.0";
    const source = { file: "/nowhere/closure.gz", sha256: "0".repeat(64), size: 40_000_000, path };
    const many = Array.from({ length: 999 }, (_, index) => ({
      ...source,
      sha256: String(index).padStart(64, "0"),
      path: path.replace("kcore", `lib-${index}`),
    }));
    const lengthOf = (list: readonly object[]): number => {
      const step = stepOf(nixProfile, { path, source: list });
      return [step.probe, step.asks, step.apply].join("").length;
    };
    expect(lengthOf([...many, source])).to.equal(lengthOf([source]));
  });
});
