import { expect } from "chai";
import { findMethod, isAudited, methods, type MethodName } from "#api/methods.ts";
import { authorize } from "#controller/server/access.ts";
import { roles, type MemberRole } from "#pki/identity.ts";

const names = Object.keys(methods) as MethodName[];

function isAllowed(name: MethodName, role: MemberRole, id = ""): boolean {
  try {
    authorize(name, { id: "a", identity: { cluster: "lab", role, id: "a" } }, id);
    return true;
  } catch {
    return false;
  }
}

describe("the controllers' API", () => {
  it("S-16: are answered to the roles of the table, which docs/security.md shows, and to nobody else", () => {
    for (const name of names)
      expect(
        roles.filter((role) => isAllowed(name, role)),
        name,
      ).to.have.members([...methods[name].roles]);
  });

  it("S-12: lets a node ask about itself only, and others about any", () => {
    expect([isAllowed("getNode", "node", "a"), isAllowed("getNode", "node", "b")]).to.deep.equal([true, false]);
    expect(isAllowed("getNode", "operator", "b")).to.equal(true);
  });

  it("S-12: ties every method that a node may ask to the node's own id, but for what tells of no node", () => {
    const open = names.filter((name) => (methods[name].roles as readonly MemberRole[]).includes("node"));
    expect(open.filter((name) => !("ownNodeOnly" in methods[name]))).to.deep.equal(["health", "ready", "bundle"]);
  });

  it("S-12: answers nothing but what admits a node before it is approved", () => {
    const open = names.filter((name) => (methods[name].roles as readonly MemberRole[]).includes("node"));
    const early = open.filter((name) => !("approvedOnly" in methods[name]));
    expect(early).to.deep.equal(["health", "ready", "registerNode", "heartbeat", "goodbye", "getNode"]);
  });

  it("S-27: leaves a line in the audit of each change, but of what comes all the time or changes nothing", () => {
    const untold = names.filter((name) => methods[name].verb === "POST" && !isAudited(name));
    expect(untold).to.deep.equal(["heartbeat", "renewChallenge", "exchangeUpdate", "planUpdate", "watch"]);
    expect(names.filter((name) => methods[name].verb === "GET" && isAudited(name))).to.deep.equal(["backup"]);
    expect([isAudited("putBundle", { whole: false }), isAudited("putBundle", { whole: true })]).to.deep.equal([
      false,
      true,
    ]);
  });

  it("finds every method by its verb and path, and takes the id from the path", () => {
    for (const name of names) {
      const found = findMethod(methods[name].verb, methods[name].path.replace("{id}", "n-1"));
      expect(found).to.deep.equal(methods[name].path.includes("{id}") ? { name, id: "n-1" } : { name });
    }
  });

  it("tells an unknown path from a wrong verb", () => {
    expect(findMethod("GET", "/v1/secrets")).to.deep.equal({ wrongVerb: false });
    expect(findMethod("GET", "/v1/nodes/../x/approve")).to.deep.equal({ wrongVerb: false });
    expect(findMethod("DELETE", "/v1/nodes")).to.deep.equal({ wrongVerb: true });
  });
});
