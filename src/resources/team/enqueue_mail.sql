-- Enqueues an e-mail: a job sends it once the transaction that wrote it is committed, and tries at most 15
-- times, over about a day and a half. E-mails are sent one after another, so that a mail server that hangs
-- takes only one slot of the jobs.
CREATE OR REPLACE FUNCTION enqueue_mail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM graphile_worker.add_job(
    'mail.send', json_build_object('mailId', NEW.id), queue_name => 'mail', max_attempts => 15);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "mail_sending" AFTER INSERT ON "mail" FOR EACH ROW EXECUTE FUNCTION enqueue_mail();
