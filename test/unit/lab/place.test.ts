import { expect } from "chai";
import { addressAt, findLabPlace, recordLabPlace, withPrefix } from "#lab/place.ts";
import { sourcesLine } from "#lab/repository.ts";
import { rejectionOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("the bridge, network and folders of a lab", () => {
  const at = folderOfEachTest("place");

  it("differ between two labs", async () => {
    const home = at();
    const usual = await findLabPlace({ home });
    const other = await findLabPlace({ home, name: "other" });
    for (const field of ["bridge", "net", "folder", "group"] as const) expect(usual[field]).to.not.equal(other[field]);
    expect(usual.home).to.equal(other.home);
  });

  it("keep interface names within the kernel's 15 characters", async () => {
    const { bridge } = await findLabPlace({ home: "/x", name: "a-name-of-20-letters" });
    expect(`vb-${bridge}-254`.length).to.be.at.most(15);
  });

  it("are recorded, so that later commands need only the lab's name", async () => {
    const home = at();
    await recordLabPlace(await findLabPlace({ home, name: "t", bridge: "kcz", net: "192.168.77" }));
    const { bridge, net, gateway } = await findLabPlace({ home, name: "t" });
    expect({ bridge, net, gateway }).to.deep.equal({ bridge: "kcz", net: "192.168.77", gateway: "192.168.77.1" });
  });

  it("cannot change while the lab is up", async () => {
    const home = at();
    await recordLabPlace(await findLabPlace({ home, name: "t" }));
    expect((await rejectionOf(findLabPlace({ home, name: "t", net: "10.9.9" }))).message).to.include(
      "take it down first",
    );
  });

  it("have IPv6 addresses if the network is the beginning of a /64", async () => {
    const home = at();
    await recordLabPlace(await findLabPlace({ home, name: "six", net: "fd77:0:0:1" }));
    const place = await findLabPlace({ home, name: "six" });
    expect([place.network, place.gateway]).to.deep.equal(["fd77:0:0:1::/64", "fd77:0:0:1::1"]);
    expect(withPrefix(place, addressAt(place, 11))).to.equal("fd77:0:0:1::11/64");
    expect(sourcesLine(place)).to.contain("http://[fd77:0:0:1::1]:8642/");
    const four = await findLabPlace({ home, net: "10.9.8" });
    expect(withPrefix(four, addressAt(four, 11))).to.equal("10.9.8.11/24");
  });

  for (const [what, options, named] of [
    ["a name with a slash", { name: "../x" }, "../x"],
    ["a public network", { net: "8.8.8" }, "8.8.8"],
    ["a number over 255", { net: "10.0.256" }, "10.0.256"],
    ["a public network of IPv6", { net: "2001:db8:0:1" }, "2001:db8:0:1"],
    ["an IPv6 network in another notation than its addresses", { net: "fd77:0:0:0" }, "fd77:0:0:0"],
    ["a bridge name that is too long for its interfaces", { bridge: "waytoolong" }, "waytoolong"],
    ["a folder that an overlay mount could not name", { home: "/a:b" }, "/a:b"],
  ] as const) {
    it(`are refused with ${what}`, async () =>
      expect((await rejectionOf(findLabPlace({ home: "/nowhere", ...options }))).message).to.include(named));
  }
});
