// The service, with its token. Refusals are thrown as the service words them.

export class Refusal extends Error {
  constructor(problem) {
    super(problem.what);
    this.problem = problem;
  }
}

let token = sessionStorage.getItem("weft-token");
let asking = null;

// One dialog, however many requests wait for the token.
function askToken(why) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("ask-token");
    document.getElementById("token-why").textContent = why;
    const field = document.getElementById("token");
    field.value = "";
    dialog.addEventListener("close", () => {
      token = field.value.trim();
      sessionStorage.setItem("weft-token", token);
      asking = null;
      resolve();
    }, { once: true });
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.showModal();
  });
  return asking;
}

export async function request(path, { method = "GET", body, headers = {}, signal } = {}) {
  while (true) {
    const sent = token;
    const response = await fetch(path, {
      method,
      signal,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(sent ? { Authorization: `Bearer ${sent}` } : {}),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (response.ok) return response;
    const problem = await response.json().catch(() => ({ status: response.status, what: response.statusText, where: null, way_out: "" }));
    if (response.status !== 401) throw new Refusal({ ...problem, status: response.status });
    if (sent === token) await askToken(sent ? "This token is wrong." : "Ask the person who started the service.");
  }
}

export const get = async (path, options) => (await request(path, options)).json();
export const post = async (path, body, options) => (await request(path, { ...options, method: "POST", body })).json();
export const pause = (name) => request(`/queries/${encodeURIComponent(name)}/pause`, { method: "POST" });
export const resume = (name) => request(`/queries/${encodeURIComponent(name)}/resume`, { method: "POST" });
export const drop = (name) => request(`/queries/${encodeURIComponent(name)}`, { method: "DELETE" });
