import type { IncomingMessage } from "node:http";
import { expect } from "chai";
import { tokenGuard } from "#web/guard.ts";

const port = 8420;
const { token, root, guard } = tokenGuard();
const ask = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  guard(port)({ url, headers: { host: `127.0.0.1:${port}`, ...headers } } as unknown as IncomingMessage);

describe("The guard of kcore web", () => {
  it("lets nobody in who has no token, or another one", () => {
    expect(ask("/")).to.include({ kind: "refused", status: 401 });
    expect(ask("/?token=")).to.include({ kind: "refused", status: 403 });
    expect(ask(`/?token=${tokenGuard().token}`)).to.include({ kind: "refused", status: 403 });
    expect(ask("/", { cookie: `kcore-web-${port}=${token}` })).to.include({ kind: "refused" });
    expect(ask("/", { authorization: "Bearer x" })).to.include({ kind: "refused" });
  });

  it("gives a cookie for the token, which no script reads, and lets it in", () => {
    const admission = ask(`/?token=${token}`);
    const cookie = admission.kind === "cookie" ? admission.cookie : "";
    expect(cookie).to.match(/^kcore-web-8420=[\w-]{43}; Path=\/[\w-]{22}\/; HttpOnly; SameSite=Strict$/);
    expect(cookie).not.to.include(token);
    expect(cookie).to.include(`Path=${root}/;`);
    const [pair = ""] = cookie.split(";");
    expect(ask(`${root}/runs`, { cookie: `other=1; ${pair}` })).to.deep.equal({ kind: "admitted" });
    expect(ask(`${root}/`, { cookie: pair.replace("8420", "8421") })).to.include({ kind: "refused" });
    // The cookie counts only below its random path, which no server of another port learns.
    for (const url of ["/", "/runs", root, `${root}x/`, `/x${root}/`])
      expect(ask(url, { cookie: pair }), url).to.include({ kind: "refused", status: 401 });
  });

  it("lets programs in that show the token", () =>
    expect(ask("/runs", { authorization: `Bearer ${token}` })).to.deep.equal({ kind: "admitted" }));

  it("answers to loopback's own names alone, whatever else points here", () => {
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`])
      expect(ask(`/?token=${token}`, { host }).kind, host).to.equal("cookie");
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1", "127.0.0.1:80", ""])
      expect(ask(`/?token=${token}`, { host }), host).to.include({ kind: "refused", status: 421 });
  });
});
