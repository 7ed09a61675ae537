import type { IncomingMessage } from "node:http";
import { expect } from "chai";
import { tokenGuard } from "#web/guard.ts";

const port = 8420;
const { token, root, guard } = tokenGuard();
const ask = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  guard(port)({ url, headers: { host: `127.0.0.1:${port}`, ...headers } } as unknown as IncomingMessage);

describe("the authentication of kcore web", () => {
  it("refuses requests without the token", () => {
    expect(ask("/")).to.include({ kind: "refused", status: 401 });
    expect(ask("/?token=")).to.include({ kind: "refused", status: 403 });
    expect(ask(`/?token=${tokenGuard().token}`)).to.include({ kind: "refused", status: 403 });
    expect(ask("/", { cookie: `kcore-web-${port}=${token}` })).to.include({ kind: "refused" });
    expect(ask("/", { authorization: "Bearer x" })).to.include({ kind: "refused" });
  });

  it("sets an HttpOnly cookie for the token, which is valid below a random path only", () => {
    const admission = ask(`/?token=${token}`);
    const cookie = admission.kind === "cookie" ? admission.cookie : "";
    expect(cookie).to.match(/^kcore-web-8420=[\w-]{43}; Path=\/[\w-]{22}\/; HttpOnly; SameSite=Strict$/);
    expect(cookie).not.to.include(token);
    expect(cookie).to.include(`Path=${root}/;`);
    const [pair = ""] = cookie.split(";");
    expect(ask(`${root}/runs`, { cookie: `other=1; ${pair}` })).to.deep.equal({ kind: "admitted" });
    expect(ask(`${root}/`, { cookie: pair.replace("8420", "8421") })).to.include({ kind: "refused" });
    // Browsers send cookies to every port, but servers of other ports do not learn the random path.
    for (const url of ["/", "/runs", root, `${root}x/`, `/x${root}/`])
      expect(ask(url, { cookie: pair }), url).to.include({ kind: "refused", status: 401 });
  });

  it("admits programs by bearer token", () =>
    expect(ask("/runs", { authorization: `Bearer ${token}` })).to.deep.equal({ kind: "admitted" }));

  it("refuses other host names than those of loopback", () => {
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`])
      expect(ask(`/?token=${token}`, { host }).kind, host).to.equal("cookie");
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1", "127.0.0.1:80", ""])
      expect(ask(`/?token=${token}`, { host }), host).to.include({ kind: "refused", status: 421 });
  });
});
