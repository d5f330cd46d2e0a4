"""Column names of other languages, of SAP and of abbreviating schemas, in English words.

`translate_to_english` translates the words of a name. Words that several languages share with English, such as `data`
or `name`, keep their English meaning unless another word of the name is foreign.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final


def _parse_pairs(text: str) -> dict[str, tuple[str, ...]]:
    return {word: tuple(meaning.split("_")) for word, meaning in (item.split("=") for item in text.split())}


ABBREVIATIONS: Final = _parse_pairs(
    "nbr=number no=number num=number nmbr=number cd=code typ=type typecode=type stat=status sts=status"
    " amt=amount"
    " dt=date"
    " dte=date ts=timestamp tmst=timestamp tm=time yr=year mth=month crtd=created crt=created crtn=created"
    " upd=updated updt=updated lst=last mod=modified modif=modified chg=changed eff=effective exp=expiry"
    " expy=expiry"
    " ind=flag flg=flag yn=flag del=deleted dlt=deleted actv=active act=active inactv=inactive bal=balance"
    " ccy=currency crncy=currency curcy=currency cntry=country cty=city ct=city st=state stt=state"
    " postl=postal"
    " pstl=postal zp=zip ln=line phn=phone ph=phone tel=phone telno=phone_number mob=mobile eml=email"
    " mail=email"
    " fst=first frst=first lstn=last_name mid=middle brth=birth bth=birth birthdt=birth_date gndr=gender"
    " mrtl=marital"
    " txn=transaction trx=transaction tran=transaction trn=transaction pmt=payment pymt=payment"
    " inv=invoice ord=order"
    " dscr=description descr=description dsc=description cmt=comment cmnt=comment rmk=remark opn=open"
    " cls=close"
    " strt=start beg=begin int=interest rt=rate pct=percent perc=percent prc=price unt=unit wt=weight"
    " wgt=weight"
    " hgt=height len=length usr=user pwd=password passwd=password img=image pic=image url=url uri=url ip=ip"
    " addr=address adr=address str=street strno=street_number bldg=building cnt=count tot=total min=minimum"
    " max=maximum"
    " lat=latitude lng=longitude lon=longitude seq=sequence ver=version vers=version dob=birth_date clr=color"
    " mgr=manager sal=salary hr=hour ssn=ssn disc=discount shp=ship shpd=shipped dlvry=delivery dlv=delivery"
    " acct=account prty=priority prio=priority sev=severity cre=created"
    " nb=count freq=frequency lmt=limit prem=premium agt=agent fname=first_name"
    " mname=middle_name emplid=employee_number yrs=years estd=established instr=instruction"
    " dest=destination dept=department"
)
_GERMAN: Final = _parse_pairs(
    "vorname=first_name nachname=last_name familienname=last_name zuname=last_name anrede=salutation"
    " titel=title"
    " geschlecht=gender geburtsdatum=birth_date geburtstag=birth_date geburtsort=birth_city"
    " strasse=street_address"
    " straße=street_address str=street_address hausnummer=street_number hausnr=street_number"
    " hnr=street_number"
    " plz=zip_code postleitzahl=zip_code ort=city stadt=city wohnort=city land=country staat=country"
    " bundesland=state telefon=phone telefonnummer=phone telefonnr=phone telefax=fax handy=mobile"
    " mobil=mobile"
    " mobiltelefon=mobile firma=company_name firmenname=company_name unternehmen=company_name"
    " abteilung=department"
    " beruf=job_title gehalt=salary lohn=salary eintrittsdatum=hire_date austrittsdatum=end_date"
    " kunde=customer"
    " kunden=customer mitarbeiter=employee lieferant=supplier artikel=product produkt=product ware=product"
    " rechnung=invoice rechnungs=invoice rechnungen=invoice bestellung=order bestell=order auftrag=order"
    " auftrags=order bestellungen=order liefer=delivery lieferung=delivery zahlung=payment zahlungs=payment"
    " beschreibung=description bezeichnung=product_label bemerkung=comment anmerkung=comment notiz=comment"
    " hinweis=comment"
    " anzahl=quantity menge=quantity stueck=quantity preis=price einzelpreis=unit_price betrag=amount"
    " summe=total"
    " gesamtsumme=total gesamtbetrag=total gesamtpreis=total netto=net_amount brutto=gross_amount mwst=tax"
    " steuer=tax steuersatz=tax_rate rabatt=discount waehrung=currency währung=currency gewicht=weight"
    " hoehe=height"
    " breite=width laenge=length farbe=color groesse=size erstellt=created angelegt=created erfasst=created"
    " geaendert=updated geändert=updated aktualisiert=updated geloescht=deleted gelöscht=deleted aktiv=active"
    " gesperrt=blocked bezahlt=paid versendet=shipped beginn=start anfang=start von=from bis=to ende=end"
    " faelligkeitsdatum=due_date faelligkeit=due_date faellig=due_date fällig=due_date gueltig=valid"
    " datum=date"
    " zeitpunkt=timestamp uhrzeit=time jahr=year monat=month tag=day stunden=hours nummer=number"
    " nr=number name=name"
    " kennzeichen=flag kategorie=category art=type sprache=language staatsangehoerigkeit=nationality"
    " nationalitaet=nationality familienstand=marital_status benutzer=user benutzername=username"
    " passwort=password"
    " kennwort=password email=email kontonummer=account_number kontoinhaber=account_name bankname=bank_name"
    " blz=bank_code steuernummer=tax_id ustid=vat_id ustidnr=vat_id bestand=stock lagerbestand=stock"
    " alter=age"
    " prioritaet=priority zustand=status einheit=unit prozent=percent satz=rate mwst_satz=tax_rate"
    " adresse=address"
    " ansprechpartner=contact_name ansprechperson=contact_name inhaber=owner_name"
    " zahlungsziel=payment_days umsatzsteuer=tax kz=code steuerklasse=tax_class urlaub=vacation tage=days"
    " brutto=gross_amount mengen=quantity konfession=religion kredit=credit telefonummer=phone"
    " faxnummer=fax stückzahl=quantity stueckzahl=quantity lager=warehouse lagerort=warehouse_code"
    " standort=city hersteller=manufacturer_name zimmer=room stockwerk=floor besitzer=owner_name"
    " verfasser=author_name autor=author_name bearbeiter=updated_by ersteller=created_by"
    " sachbearbeiter=employee_name vertreter=agent_name schueler=student lehrer=teacher"
    " arzt=doctor mitglied=member mitglieder=member kunden=customer geburt=birth geburts=birth steuer=tax"
    " gruppe=group versand=shipping frist=due_date fahrzeug=vehicle kfz=vehicle"
    " kilometerstand=mileage baujahr=build_year raum=room wert=value grund=reason ursache=reason"
    " dauer=duration breitengrad=latitude laengengrad=longitude wohnflaeche=area flaeche=area miete=rent"
    " kaltmiete=rent umsatz=revenue kosten=cost gebuehr=fee gutschrift=credit_amount"
    " mahnstufe=level stufe=level lohnart=type"
    " anschrift=address rufnummer=phone koerpergroesse=height koerpergewicht=weight"
    " blutgruppe=blood_group hausarzt=doctor_name beitrag=fee krankenkasse=insurer_name"
    " vertrag=contract vertrags=contract versicherung=insurance versicherungs=insurance zeit=time"
    " abgabe=fee geburtsland=birth_country"
)
_DUTCH: Final = _parse_pairs(
    "voornaam=first_name achternaam=last_name tussenvoegsel=name_particle voorletters=initials"
    " aanhef=salutation"
    " geslacht=gender geboortedatum=birth_date geboorteplaats=city straat=street_name straatnaam=street_name"
    " huisnummer=street_number huisnr=street_number toevoeging=addition postcode=zip_code plaats=city"
    " woonplaats=city plaatsnaam=city stad=city gemeente=city provincie=state telefoon=phone"
    " telefoonnummer=phone"
    " mobiel=mobile bedrijf=company_name bedrijfsnaam=company_name afdeling=department functie=job_title"
    " salaris=salary klant=customer klanten=customer medewerker=employee leverancier=supplier factuur=invoice"
    " facturen=invoice bestelling=order bestellingen=order bestel=order levering=delivery lever=delivery"
    " omschrijving=description beschrijving=description opmerking=comment opmerkingen=comment aantal=quantity"
    " hoeveelheid=quantity prijs=price bedrag=amount totaal=total btw=tax korting=discount munt=currency"
    " valuta=currency gewicht=weight hoogte=height kleur=color aangemaakt=created gewijzigd=updated"
    " verwijderd=deleted"
    " actief=active betaald=paid begindatum=start_date einddatum=end_date vervaldatum=due_date datum=date"
    " jaar=year"
    " maand=month naam=name nummer=number soort=type taal=language nationaliteit=nationality gebruiker=user"
    " gebruikersnaam=username wachtwoord=password rekeningnummer=iban leeftijd=age voorraad=stock"
    " contactpersoon=contact_name landcode=country_code kvknummer=tax_id btwnummer=vat_id bsn=national_id"
    " stukprijs=unit_price inkoopprijs=cost verkoopprijs=price geblokkeerd=blocked aangemaakt=created"
    " gemaakt=created regels=line regel=line relatie=customer relaties=customer bijgewerkt=updated"
    " opgezegd=cancelled lidnummer=member_number leden=member eenheid=unit gewicht=weight"
    " breedte=width diepte=depth lengte=length oppervlakte=area bouwjahr=build_year bouwjaar=build_year"
    " kenteken=license_plate kilometerstand=mileage eigenaar=owner_name"
    " burgerlijkestaat=marital_status dienst=service bruto=gross_amount geboorteland=country"
    ""
)
_FRENCH: Final = _parse_pairs(
    "nom=name prenom=first_name prénom=first_name civilite=salutation sexe=gender naissance=birth ville=city"
    " commune=city"
    " famille=family naissances=birth pays=country departement=state rue=street_name voie=street_name"
    " adresse=address postal=postal cp=zip_code"
    " telephone=phone téléphone=phone portable=mobile courriel=email mel=email societe=company raison=company"
    " entreprise=company_name fournisseur=supplier facture=invoice commande=order livraison=delivery"
    " paiement=payment"
    " produit=product produits=product libelle=product_label designation=product_label quantite=quantity"
    " qte=quantity"
    " prix=price unitaire=unit montant=amount remise=discount tva=tax taux=rate devise=currency poids=weight"
    " hauteur=height largeur=width couleur=color taille=size creation=created modification=updated"
    " maj=updated"
    " suppression=deleted supprime=deleted actif=active paye=paid payee=paid debut=start fin=end echeance=due"
    " annee=year mois=month jour=day heure=time numero=number salaire=salary poste=job_title"
    " service=department"
    " embauche=hire langue=language nationalite=nationality utilisateur=user identifiant=username"
    " motdepasse=password mdp=password commentaire=comment remarque=comment etat=status statut=status"
    " categorie=category ht=net ttc=gross etablissement=company fonction=job_title"
    " enfants=children passe=password siret=siret tel=phone"
    " interlocuteur=contact_name adherent=member adherents=member"
    " inscription=registered cotisation=fee ligne=line lignes=line marque=brand_name"
    " modele=model immatriculation=license_plate kilometrage=mileage loyer=rent"
    " etage=floor batiment=building auteur=author_name proprietaire=owner_name"
    " duree=duration cout=cost frais=fee solde=balance mere=mother pere=father"
    " conjoint=spouse epouse=spouse sexe=gender prixht=net_price prixttc=gross_price numsecu=national_id"
    " secu=national_id nir=national_id patronyme=last_name nomjeunefille=last_name jeune=young"
    " fille=maiden"
    " lieu=place vente=sale achat=purchase moyen=method inscrit=registered"
)
_SPANISH: Final = _parse_pairs(
    "nombre=name nombres=first_name apellido=last_name apellidos=last_name sexo=gender genero=gender"
    " fecha=date"
    " nacimiento=birth nac=birth ciudad=city localidad=city municipio=city poblacion=city provincia=state"
    " estado=status"
    " pais=country calle=street_name direccion=address domicilio=address codpostal=zip_code"
    " codpais=country_code"
    " coddivisa=currency_code codigo=code telefono=phone telefono1=phone telefono2=phone celular=mobile"
    " movil=mobile"
    " correo=email electronico=electronic empresa=company_name proveedor=supplier cliente=customer"
    " clientes=customer"
    " clienti=customer empleado=employee empleados=employee factura=invoice facturas=invoice"
    " facturascli=invoice"
    " pedido=order pedidos=order producto=product productos=product articulo=product descripcion=description"
    " observaciones=comment observacion=comment nota=comment cantidad=quantity precio=price unitario=unit"
    " importe=amount monto=amount impuesto=tax iva=tax descuento=discount moneda=currency divisa=currency"
    " peso=weight"
    " altura=height creado=created alta=created creacion=created actualizado=updated modificado=updated"
    " modificacion=updated eliminado=deleted borrado=deleted baja=end activo=active pagado=paid inicio=start"
    " vencimiento=due entrega=delivery ano=year año=year mes=month dia=day hora=time numero=number"
    " sueldo=salary salario=salary cargo=job_title puesto=job_title contratacion=hire idioma=language"
    " nacionalidad=nationality usuario=user contrasena=password clave=password cifnif=tax_id nif=tax_id"
    " cif=tax_id"
    " dni=national_id rfc=tax_id curp=national_id tipo=type edad=age existencias=stock categoria=category"
    " razonsocial=company_name cifnif=tax_id paterno=paternal materno=maternal alumno=student"
    " alumnos=student profesor=teacher colonia=district linea=line lineas=line tarifa=price"
    " matricula=license_plate marca=brand_name modelo=model propietario=owner_name superficie=area"
    " alquiler=rent habitaciones=rooms autor=author_name motivo=reason duracion=duration"
    " saldo=balance madre=mother padre=father conyuge=spouse estadocivil=marital_status"
    " codigopostal=zip_code cuenta=account banco=bank_name contacto=contact_name completo=full"
    " completa=full porcentaje=percent bloqueado=blocked"
    " habilitado=enabled vendedor=salesperson_name comprador=buyer_name"
    " lugar=place forma=method pago=payment venta=sale ventas=sale compra=purchase ingreso=hire"
    " empleo=employment"
)
_PORTUGUESE: Final = _parse_pairs(
    "nome=name sobrenome=last_name nascimento=birth cidade=city bairro=district uf=state_code"
    " logradouro=street_name"
    " endereco=address cep=zip_code telefone=phone fone=phone senha=password usuario=user"
    " empresa=company_name"
    " razao=company fornecedor=supplier funcionario=employee funcionarios=employee produto=product"
    " produtos=product"
    " descricao=description observacao=comment quantidade=quantity qtd=quantity qtde=quantity preco=price"
    " valor=amount"
    " desconto=discount imposto=tax moeda=currency cadastro=created criacao=created criado=created"
    " atualizacao=updated"
    " atualizado=updated excluido=deleted ativo=active pago=paid inicio=start fim=end vencimento=due"
    " entrega=delivery"
    " admissao=hire salario=salary cpf=national_id cnpj=tax_id rg=national_id pedido=order estoque=stock"
    " idade=age"
    " situacao=status pais=country dt=date vl=amount qt=quantity nm=name nr=number sg=code tp=type"
    " fl=flag ds=text"
    " venda=sale"
    " completo=full completa=full mae=mother pai=father conjuge=spouse inclusao=created alteracao=updated"
    " exclusao=deleted percentual=percent unitario=unit linha=line itens=item aluno=student"
    " professor=teacher matricula=registration_number placa=license_plate marca=brand_name modelo=model"
    " proprietario=owner_name aluguel=rent quartos=bedrooms andar=floor autor=author_name motivo=reason"
    " duracao=duration saldo=balance banco=bank_name agencia=branch_code conta=account"
    " contato=contact_name bloqueado=blocked vendedor=salesperson_name municipio=city pessoa=person"
    " pessoas=person sexo=gender estadocivil=marital_status naturalidade=city nacionalidade=nationality"
    " celular=mobile peso=weight altura=height largura=width cor=color tamanho=size codigo=code"
    " forma=method pagamento=payment compra=purchase demissao=end venda=sale bruto=gross"
    " validade=expiry"
)
_ITALIAN: Final = _parse_pairs(
    "cognome=last_name indirizzo=address citta=city città=city comune=city cap=zip_code nazione=country"
    " paese=country"
    " regione=state sesso=gender nascita=birth azienda=company_name ragione=company sociale=social"
    " fornitore=supplier"
    " dipendente=employee dipendenti=employee fattura=invoice fatture=invoice ordine=order ordini=order"
    " prodotto=product"
    " prodotti=product descrizione=description quantita=quantity quantità=quantity prezzo=price"
    " importo=amount"
    " totale=total sconto=discount valuta=currency creazione=created modifica=updated eliminato=deleted"
    " attivo=active"
    " pagata=paid pagato=paid inizio=start fine=end scadenza=due consegna=delivery anno=year mese=month"
    " giorno=day"
    " ora=time numero=number stipendio=salary assunzione=hire lingua=language stato=status utente=user"
    " cellulare=mobile"
    " codice=code fiscale=fiscal partita=vat eta=age età=age note=comment via=street_name"
    " pec=email aliquota=rate imponibile=net_amount unitario=unit inserimento=created variazione=updated"
    " cancellazione=deleted riga=line righe=line targa=license_plate marca=brand_name modello=model"
    " proprietario=owner_name superficie=area affitto=rent camere=bedrooms autore=author_name"
    " motivo=reason durata=duration saldo=balance banca=bank_name conto=account referente=contact_name"
    " bloccato=blocked venditore=salesperson_name madre=mother padre=father coniuge=spouse"
    " cittadinanza=nationality alunno=student docente=teacher socio=member soci=member"
    " iscrizione=registered peso=weight altezza=height larghezza=width colore=color taglia=size"
    " luogo=place modalita=method pagamento=payment vendita=sale acquisto=purchase lordo=gross"
    " misura=measure unita=unit giacenza=stock"
)
_POLISH: Final = _parse_pairs(
    "imie=first_name imię=first_name nazwisko=last_name nazwa=name plec=gender płeć=gender urodzenia=birth"
    " ulica=street_name"
    " domu=street miasto=city miejscowosc=city kraj=country wojewodztwo=state pocztowy=postal kod=code"
    " telefon=phone"
    " komorka=mobile firma=company_name dostawca=supplier klient=customer klienci=customer pracownik=employee"
    " faktura=invoice zamowienie=order zamowienia=order produkt=product opis=description uwagi=comment"
    " ilosc=quantity"
    " ilość=quantity cena=price kwota=amount suma=total podatek=tax rabat=discount waluta=currency"
    " waga=weight"
    " utworzenia=created utworzono=created modyfikacji=updated usuniety=deleted aktywny=active zaplacona=paid"
    " rozpoczecia=start zakonczenia=end platnosci=due dostawy=delivery rok=year miesiac=month numer=number"
    " stanowisko=job_title dzial=department pensja=salary zatrudnienia=hire jezyk=language haslo=password"
    " uzytkownik=user nip=tax_id pesel=national_id wiek=age mieszkania=apartment"
    " brutto=gross netto=net regon=tax_id krs=tax_id dodania=created dodano=created edycji=updated"
    " zmiany=updated usunieto=deleted pozycja=line pozycje=line jednostkowa=unit jednostka=unit"
    " kontrahent=customer kontrahenci=customer pracownicy=employee nr=number adres=address email=email"
    " konta=account wlasciciel=owner_name autor=author_name powod=reason powierzchnia=area"
    " czynsz=rent pokoje=rooms pietro=floor rejestracyjny=registration marka=brand_name"
    " przebieg=mileage matki=mother ojca=father rodzaj=type zablokowany=blocked kolor=color"
    " rozmiar=size wzrost=height szerokosc=width dlugosc=length obywatelstwo=nationality czlonek=member"
    " nauczyciel=teacher"
    " miejsce=place sposob=method platnosc=payment platnosci=payment miary=measure waznosci=expiry"
    " magazyn=stock stawka=rate wartosc=total"
)
_LATIN: Final = {**_PORTUGUESE, **_ITALIAN, **_POLISH, **_SPANISH, **_FRENCH}
_FOREIGN_WORDS: Final = {**_LATIN, **_DUTCH, **_GERMAN}

SAP_NAMES: Final = _parse_pairs(
    "kunnr=customer_number lifnr=supplier_number matnr=material_number vbeln=document_number"
    " belnr=document_number"
    " ebeln=document_number aufnr=order_number posnr=item_number ebelp=item_number pernr=personnel_number"
    " land1=country_code banks=country_code stcd1=tax_id stcd2=tax_id stceg=vat_id name1=company_name"
    " name2=address_line_2"
    " ort01=city ort02=district pstlz=zip_code pstl2=zip_code regio=state_code stras=street_address"
    " telf1=phone"
    " telf2=mobile telfx=fax erdat=created_date aedat=updated_date ernam=created_by"
    " aenam=updated_by"
    " spras=language_key waers=currency_code waerk=currency_code hwaer=currency_code netwr=net_amount"
    " netpr=net_price"
    " dmbtr=amount wrbtr=amount mwsbp=tax_amount menge=quantity kwmeng=quantity meins=unit vrkme=unit"
    " gewei=unit"
    " brgew=gross_weight ntgew=net_weight maktx=product_label arktx=product_label mtart=material_type"
    " matkl=material_group ean11=ean vorna=first_name nachn=last_name gbdat=birth_date gesch=gender_key"
    " anred=salutation"
    " bukrs=company_key werks=company_key lgort=company_key vkorg=company_key vtweg=division_key"
    " spart=division_key"
    " ekorg=company_key kokrs=company_key gjahr=fiscal_year monat=fiscal_period budat=posting_date"
    " bldat=document_date"
    " audat=document_date cpudt=created_date fkdat=invoice_date lfdat=delivery_date shkzg=debit_credit"
    " loevm=deletion_mark lvorm=deletion_mark bankn=account_number bankl=bank_code swift=bic banka=bank_name"
    " smtp_addr=email usnam=created_by mandt=client_number kostl=cost_center saknr=account_code"
    " hkont=account_code"
    " begda=start_date endda=end_date natio=nationality butxt=company_name erzet=created_time"
    " cputm=created_time uzeit=created_time street=street_address house_num1=street_number"
    " post_code1=zip_code tel_number=phone fax_number=fax langu=language_key zterm=payment_key"
    " inco1=delivery_key"
    " wkurs=exchange_rate kursf=exchange_rate sgtxt=text labst=stock_quantity stell=job_number"
    " plans=job_number"
    " ansvh=employee_key famst=marital_status anzkd=children gblnd=country_code"
)

# Words that end German and Dutch compounds, such as Rechnungsnummer.
_ENDINGS: Final = (
    "nummer nr datum name naam strasse straße straat betrag bedrag preis prijs adresse adres art satz menge"
    " status summe ort tag"
).split()
# Those that no English word ends with, so that the first part need not be known.
_CERTAIN_ENDINGS: Final = (
    "nummer datum betrag preis strasse anschrift adresse bezeichnung beschreibung gewicht groesse laenge"
    " breite hoehe"
    " anzahl menge kennzeichen"
).split()
_MIN_STEM_CHARS: Final = 4  # chosen: letters of an unknown first part
# Words that begin Spanish and Portuguese compounds, such as fechaalta.
_BEGINNINGS: Final = ("fecha", "cod", "num", "tipo", "nombre")
_LINK_WORDS: Final = frozenset(
    "de da do di du des del della dello la le el los las l d of the et y e og".split()
)
_HEAD_NOUNS: Final = frozenset(
    "salary phone mobile email place method date number name code type status amount price total address"
    " time rate percent unit timestamp quantity"
    " tax net flag gross text document customer".split()
)
_CODED_NOUNS: Final = frozenset(
    "client customer supplier vendor product article item employee member".split()
)
_HUNGARIAN_PREFIXES: Final = frozenset("c d n f b k t s i v p x".split())
_PHRASES: Final = {
    "vat iva": "vat_id", "partita iva": "vat_id", "vat tax": "vat_id", "code fiscal": "tax_id", "code"
     " postal": "zip_code",
    "postal code": "zip_code", "email electronic": "email", "code zip": "zip_code", "company social": "company_name",
    "mot de passe": "password", "company sociale": "company_name", "tax intra": "vat_id", "tax tx": "tax_rate",
    "mode payment": "payment_method", "marital country": "marital_status", "updated from": "updated_by",
    "created from": "created_by", "deleted from": "deleted_by",
}  # fmt: skip


def translate_to_english(words: Sequence[str]) -> list[str]:
    """Return the words of a column's or table's name in English.

    English names are returned unchanged, except for abbreviations.
    """
    return list(_translate_cached(tuple(words)))


@lru_cache(4_096)
def _translate_cached(words: tuple[str, ...]) -> tuple[str, ...]:
    combined = "".join(words)
    for known in ("_".join(words), combined):
        if known in SAP_NAMES:
            return SAP_NAMES[known]
    if len(words) > 1 and combined in _FOREIGN_WORDS:
        return _FOREIGN_WORDS[combined]
    if words == ("tag",):  # German for a day, but on its own a label
        return words
    if len(words) > 1 and words[0] in _HUNGARIAN_PREFIXES and _translate(words[1]) is not None:
        words = words[1:]
    foreign = any(_translate(word) is not None and word not in ABBREVIATIONS for word in words)
    found: list[str]
    if not foreign:
        found = [part for word in words for part in ABBREVIATIONS.get(word) or _split_compound(word)]
        if len(found) == 2 and found[0] in ("code", "number") and found[1] in _CODED_NOUNS:
            found.reverse()  # `code_client`
        return tuple(found)
    latin = any(word in _LATIN or word == "data" for word in words)
    found = []
    for word in words:
        if word in _LINK_WORDS and len(words) > 1:
            continue
        if word == "data" and len(words) > 1:
            found.append("date")
            continue
        found += _translate(word) or ABBREVIATIONS.get(word) or _split_compound(word)
    if found[0] == "text" and len(found) > 1:
        found = found[1:]
    joined = " ".join(found)
    for phrase, meaning in _PHRASES.items():
        if joined.startswith(phrase):
            return (*meaning.split("_"), *joined[len(phrase) :].split())
    if latin and len(found) > 1 and found[0] in _HEAD_NOUNS:
        found = [*found[1:], found[0]]  # adjectives and genitives follow their noun: fecha de nacimiento
    return tuple(dict.fromkeys(found))


_COMMON_WORDS: Final = frozenset(
    "access account active address agent amount approved area author balance bank batch branch budget"
    " building buyer"
    " cancelled category change channel charge city class client code comment company contact contract"
    " cost country"
    " created credit currency customer date delivery department deposit description discount display"
    " district due"
    " effective email employee expiry factor fee file flag format group hire holder insurance interest"
    " invoice ip item"
    " language level limit line location login machine manager market member message method modified"
    " month notice number"
    " office officer order owner package partner party payment percent period person phone place policy"
    " position postal"
    " premium price product program project purchase quantity rate reason reference region register"
    " report request result"
    " role salary schedule section seller service shipment site size sort source staff status stock store"
    " street subject"
    " supplier table tax teller term ticket time total transaction transfer type unit update user value"
    " vendor visit"
    " warehouse week weight year zip".split()
)
"""Words that names of columns abbreviate, or join."""
_VOWELS: Final = str.maketrans("", "", "aeiou")
_PREFIXES: Final = (
    "last",
    "first",
    "time",
    "date",
    "start",
    "end",
    "mail",
    "max",
    "min",
    "total",
    "num",
    "user",
)
_MIN_SKELETON_CHARS: Final = 3


_UNSPLIT: Final = frozenset("datetime timeline timetable".split())
"""Words that look like two common ones."""


def _skeletons() -> dict[str, str]:
    """Return the common words by their consonants, without those that are ambiguous."""
    found: dict[str, str] = {}
    for word in sorted(_COMMON_WORDS):
        plain = word[:1] + word[1:].translate(_VOWELS)
        without_doubles = "".join(letter for letter, _ in groupby(plain))  # `ofcr` for `offcr`
        for skeleton in {plain, without_doubles}:
            if len(skeleton) >= _MIN_SKELETON_CHARS and skeleton != word:
                found[skeleton] = "" if skeleton in found else word
    return {skeleton: word for skeleton, word in found.items() if word}


_SKELETONS: Final = _skeletons()


def _split_compound(word: str) -> tuple[str, ...]:
    """Split an English name that is written as one word (`lastip`, `timecreated`) or without vowels (`ofcr`)."""
    expanded = _SKELETONS.get(word)
    if expanded is not None:
        return (expanded,)
    for first in _PREFIXES:
        rest = word.removeprefix(first)
        if rest != word and rest in _COMMON_WORDS and word not in _UNSPLIT:
            return (first, rest)
    return (word,)


@lru_cache(4_096)
def _translate(word: str) -> tuple[str, ...] | None:
    if word in _FOREIGN_WORDS:
        return _FOREIGN_WORDS[word]
    plain = word.rstrip("0123456789")
    if plain != word:  # `telefon2`
        known = _translate(plain) if plain else None
        return None if known is None else (*known, word[len(plain) :])
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) >= len(ending) + 3:
            stem = word.removesuffix(ending)
            known = _FOREIGN_WORDS.get(stem) or _FOREIGN_WORDS.get(stem.removesuffix("s"))
            if known is not None:
                return (*known, *_FOREIGN_WORDS[ending]) if ending in _FOREIGN_WORDS else (*known, ending)
    for language in (_GERMAN, _DUTCH):
        for cut in range(_MIN_PART_CHARS, len(word) - _MIN_PART_CHARS + 1):
            stem, ending = word[:cut], word[cut:]
            # Also without the letters that link it to the second part: Urlaubs-tage, Mengen-einheit.
            links = [
                link for link in ("s", "n", "en", "e") if len(stem) > _MIN_PART_CHARS and stem.endswith(link)
            ]
            stems = [stem, *(stem.removesuffix(link) for link in links)]
            first = next((item for item in stems if item in language), None)
            if ending in language and first is not None:
                return (*language[first], *language[ending])
    for ending in _CERTAIN_ENDINGS:
        if word.endswith(ending) and len(word) >= len(ending) + _MIN_STEM_CHARS:
            return (word.removesuffix(ending), *_GERMAN[ending])
    for beginning in _BEGINNINGS:
        rest = word.removeprefix(beginning)
        if rest != word and rest in _FOREIGN_WORDS and beginning in _FOREIGN_WORDS | {"cod": 0, "num": 0}:
            head = {"cod": ("code",), "num": ("number",)}.get(beginning) or _FOREIGN_WORDS[beginning]
            return (*_FOREIGN_WORDS[rest], *head)
    return None


_MIN_PART_CHARS: Final = 3  # chosen: letters of each part of a compound


_LANGUAGES: Final = (
    ("de_DE", _GERMAN), ("nl_NL", _DUTCH), ("fr_FR", _FRENCH), ("es_ES", _SPANISH), ("pt_BR", _PORTUGUESE),
    ("it_IT", _ITALIAN), ("pl_PL", _POLISH),
)  # fmt: skip
_SHARED_WORDS: Final = frozenset(
    "name email titel art von bis tag handy mobil str note cap age land plan service art dt nr email nota"
    " data"
    " postcode ht rg"
    " cp min max total creation modification description code clave tipo date nom fin via portable".split()
)
"""Words that other languages, or English, have too."""


def detect_locale(names: Sequence[Sequence[str]]) -> str | None:
    """Return the locale of the language that several names of a table are in, or None."""
    votes: dict[str, int] = {}
    for words in names:
        locales = {
            locale
            for locale, known in _LANGUAGES
            for word in words
            if word not in _SHARED_WORDS and (word in known or _is_compound(word, known))
        }
        for locale in locales:
            votes[locale] = votes.get(locale, 0) + 1
    ranked = sorted(votes.items(), key=lambda item: -item[1])
    if not ranked or ranked[0][1] < 2 or (len(ranked) > 1 and ranked[1][1] == ranked[0][1]):
        return None
    return ranked[0][0]


def _is_compound(word: str, known: dict[str, tuple[str, ...]]) -> bool:
    return any(
        word.endswith(ending) and word.removesuffix(ending).removesuffix("s") in known
        for ending in _ENDINGS
        if ending in known
    )
