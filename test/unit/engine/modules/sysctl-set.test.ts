import { expect } from "chai";
import { sysctlPath } from "#engine/step/fragments/sysctl.ts";

describe("sysctl.set", () => {
  it("reads keys as sysctl.d(5) does", () => {
    for (const key of ["net.ipv4.conf.eth0/10.rp_filter", "net/ipv4/conf/eth0.10/rp_filter"])
      expect(sysctlPath(key)).to.equal("net/ipv4/conf/eth0.10/rp_filter");
  });
});
