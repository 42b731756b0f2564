// Starts the page: reads the index, shows the list, and registers all event handlers.

async function start() {
  const index = await decompress("index");
  list.metric = index.metric;
  startList(index);
  find("sentences").hidden = false;
  find("save").addEventListener("click", saveShown);
  find("previous").addEventListener("click", () => step(-1));
  find("next").addEventListener("click", () => step(1));
  addEventListener("hashchange", followAddress);
  addEventListener("keydown", pressed);
  addEventListener("beforeprint", printShown);
  addEventListener("afterprint", forgetPrinted);
  followAddress();
  performance.mark("ready");
}

start().catch(showError);
