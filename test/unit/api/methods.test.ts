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
  it("S-16: answers exactly the roles that the table of methods names", () => {
    for (const name of names)
      expect(
        roles.filter((role) => isAllowed(name, role)),
        name,
      ).to.have.members([...methods[name].roles]);
  });

  it("S-12: answers a node about itself only, and an operator about every node", () => {
    expect([isAllowed("getNode", "node", "a"), isAllowed("getNode", "node", "b")]).to.deep.equal([true, false]);
    expect(isAllowed("getNode", "operator", "b")).to.equal(true);
  });

  it("S-12: ties every method for nodes to the caller's own id, but for methods about no node", () => {
    const forNodes = names.filter((name) => (methods[name].roles as readonly MemberRole[]).includes("node"));
    expect(forNodes.filter((name) => !("ownNodeOnly" in methods[name]))).to.deep.equal(["health", "ready", "bundle"]);
  });

  it("S-12: answers a node before its approval only the methods for registration", () => {
    const forNodes = names.filter((name) => (methods[name].roles as readonly MemberRole[]).includes("node"));
    const early = forNodes.filter((name) => !("approvedOnly" in methods[name]));
    expect(early).to.deep.equal(["health", "ready", "registerNode", "heartbeat", "goodbye", "getNode"]);
  });

  it("S-27: audits every POST except frequent calls and reads", () => {
    const unaudited = names.filter((name) => methods[name].verb === "POST" && !isAudited(name));
    expect(unaudited).to.deep.equal(["heartbeat", "renewChallenge", "exchangeUpdate", "planUpdate", "watch"]);
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

  it("distinguishes an unknown path from a wrong verb", () => {
    expect(findMethod("GET", "/v1/secrets")).to.deep.equal({ wrongVerb: false });
    expect(findMethod("GET", "/v1/nodes/../x/approve")).to.deep.equal({ wrongVerb: false });
    expect(findMethod("DELETE", "/v1/nodes")).to.deep.equal({ wrongVerb: true });
  });
});
